"""FLiP: a federation that shares distilled data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from overheard.papers.experiment import Experiment, Paper
from overheard.papers.flip.accuracy import AccuracyExperiment
from overheard.papers.flip.membership import MembershipExperiment


@final
@dataclass(frozen=True, slots=True)
class Flip(Paper):
    """Table I, and the membership attack of Section VI-D2."""

    name: ClassVar[str] = "flip"
    title: ClassVar[str] = "Privacy-Preserving Federated Learning via Dataset Distillation"
    source: ClassVar[str] = "FLiP (arXiv 2410.19548)"

    def experiments(self) -> Mapping[str, Experiment]:
        """Its experiments by name, in the order of the paper."""
        every: tuple[Experiment, ...] = (AccuracyExperiment(), MembershipExperiment())
        return {one.name: one for one in every}
