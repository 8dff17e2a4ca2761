"""Decaf: label shares of a user's data from its update."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

from overheard_studies.decaf.ablation import AblationExperiment
from overheard_studies.decaf.benchmark import BENCHMARKS
from overheard_studies.decaf.by_round import RoundsExperiment
from overheard_studies.decaf.deep_networks import DeepNetworksExperiment
from overheard_studies.decaf.defended import DefendedDecafExperiment
from overheard_studies.decaf.scores import PUBLISHED_DECAF
from overheard_studies.decaf.sweep import AuxiliaryExperiment, NeuronsExperiment
from overheard_studies.decaf.table import DecafTableExperiment
from overheard_studies.experiment import Experiment, Paper


@final
@dataclass(frozen=True, slots=True)
class DecafPaper(Paper):
    """Tables III to VII and the figures that can be reproduced."""

    name: ClassVar[str] = "decaf"
    title: ClassVar[str] = (
        "Decaf: Data Distribution Decompose Attack against Federated Learning"
    )
    source: ClassVar[str] = "Dai et al. 2024 (arXiv 2405.15316)"

    def experiments(self) -> Mapping[str, Experiment]:
        """Return the experiments by name, in the order of the paper."""
        experiments: tuple[Experiment, ...] = (
            *(DecafTableExperiment(benchmark.table, benchmark) for benchmark in BENCHMARKS),
            RoundsExperiment(),
            AuxiliaryExperiment(),
            NeuronsExperiment(),
            AblationExperiment(
                "figure9",
                "null removal",
                replace(PUBLISHED_DECAF, null_removal=False),
                "table14",
            ),
            AblationExperiment(
                "figure10", "calibrator", replace(PUBLISHED_DECAF, calibrator=False), "table15"
            ),
            DeepNetworksExperiment(),
            DefendedDecafExperiment(),
        )
        return {one.name: one for one in experiments}
