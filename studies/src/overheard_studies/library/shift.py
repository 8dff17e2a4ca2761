"""Data distribution shifts: what one client learns about a change in another's data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from overheard_studies.experiment import Experiment, Paper
from overheard_studies.shift.centralised import CentralisedExperiment
from overheard_studies.shift.layers import LayersExperiment
from overheard_studies.shift.measure import source_of_leakage
from overheard_studies.shift.scalability import ScalabilityExperiment
from overheard_studies.shift.scenarios import CENSUS, FASHION_MNIST, MNIST
from overheard_studies.shift.sensitivity import SensitivityExperiment

GRADIENTS_COSINE = source_of_leakage("gradients", "cosine")
GRADIENTS_CMD = source_of_leakage("gradients", "cmd")
REPRESENTATIONS_CMD = source_of_leakage("representations", "cmd")


@final
@dataclass(frozen=True, slots=True)
class ShiftPaper(Paper):
    """Figures 5 to 10."""

    name: ClassVar[str] = "shift"
    title: ClassVar[str] = (
        "Data Distribution Shifts in (Industrial) Federated Learning as a Privacy Issue"
    )
    source: ClassVar[str] = "Brunner and Montuoro 2024 (arXiv 2409.13875)"

    def experiments(self) -> Mapping[str, Experiment]:
        """Return the experiments by name, in the order of the paper."""
        experiments: tuple[Experiment, ...] = (
            CentralisedExperiment(),
            LayersExperiment(),
            SensitivityExperiment("figure7a", MNIST, GRADIENTS_CMD),
            SensitivityExperiment("figure7b", FASHION_MNIST, GRADIENTS_COSINE),
            SensitivityExperiment("figure7c", CENSUS, REPRESENTATIONS_CMD),
            ScalabilityExperiment("figure8", MNIST, GRADIENTS_COSINE),
            ScalabilityExperiment("figure9", FASHION_MNIST, GRADIENTS_COSINE),
            ScalabilityExperiment("figure10", CENSUS, REPRESENTATIONS_CMD),
        )
        return {one.name: one for one in experiments}
