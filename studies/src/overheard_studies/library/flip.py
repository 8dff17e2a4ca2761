"""FLiP: federated learning by dataset distillation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from overheard_studies.experiment import Experiment, Paper
from overheard_studies.flip.accuracy import AccuracyExperiment
from overheard_studies.flip.attribute import AttributeExperiment
from overheard_studies.flip.membership import MembershipExperiment
from overheard_studies.flip.methods import MethodsExperiment
from overheard_studies.flip.samples import SamplesExperiment


@final
@dataclass(frozen=True, slots=True)
class FlipPaper(Paper):
    """Table I, Figure 4, Table II, and the membership attack of Section VI-D2."""

    name: ClassVar[str] = "flip"
    title: ClassVar[str] = "Privacy-Preserving Federated Learning via Dataset Distillation"
    source: ClassVar[str] = "FLiP (arXiv 2410.19548)"

    def experiments(self) -> Mapping[str, Experiment]:
        """Return the experiments by name, in the order of the paper."""
        experiments: tuple[Experiment, ...] = (
            AccuracyExperiment(),
            SamplesExperiment(),
            AttributeExperiment(),
            MembershipExperiment(),
            MethodsExperiment(),
        )
        return {one.name: one for one in experiments}
