"""Whispers of Data: label shares from per-class accuracies, by virtual clients."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from overheard_studies.experiment import Experiment, Paper
from overheard_studies.whispers.benchmark import AG_NEWS, FASHION_MNIST, FER2013, MNIST
from overheard_studies.whispers.defended import DefendedWhispersExperiment
from overheard_studies.whispers.lines import LinesExperiment
from overheard_studies.whispers.scenario import (
    dirichlet_scenarios,
    few_labels_scenario,
    iid_scenario,
)
from overheard_studies.whispers.sizes import SizesExperiment
from overheard_studies.whispers.table import WhispersTableExperiment

IID_SCENARIOS = (iid_scenario(MNIST), iid_scenario(FASHION_MNIST), iid_scenario(AG_NEWS))
FEW_LABEL_SCENARIOS = tuple(
    few_labels_scenario(one) for one in (MNIST, FASHION_MNIST, FER2013, AG_NEWS)
)
DIRICHLET_SCENARIOS = tuple(
    scenario
    for one in (MNIST, FASHION_MNIST, FER2013, AG_NEWS)
    for scenario in dirichlet_scenarios(one)
)
NOISE_SCENARIOS = (
    iid_scenario(FASHION_MNIST, "fashion_mnist_iid"),
    *dirichlet_scenarios(FASHION_MNIST),
)


@final
@dataclass(frozen=True, slots=True)
class WhispersPaper(Paper):
    """Tables 2 to 4 and Figures 2 to 6."""

    name: ClassVar[str] = "whispers"
    title: ClassVar[str] = (
        "Whispers of Data: Unveiling Label Distributions in Federated Learning Through Virtual "
        "Client Simulation"
    )
    source: ClassVar[str] = "Ma et al. 2025 (arXiv 2504.21436)"

    def experiments(self) -> Mapping[str, Experiment]:
        """Return the experiments by name, in the order of the paper."""
        experiments: tuple[Experiment, ...] = (
            SizesExperiment(),
            WhispersTableExperiment("table2", "IID clients", IID_SCENARIOS),
            LinesExperiment("figure3", "IID clients", IID_SCENARIOS),
            LinesExperiment("figure4", "few labels per client", FEW_LABEL_SCENARIOS),
            WhispersTableExperiment("table3", "Dirichlet clients", DIRICHLET_SCENARIOS),
            LinesExperiment("figure5", "Dirichlet clients", DIRICHLET_SCENARIOS),
            DefendedWhispersExperiment(),
            LinesExperiment("figure6", "noise of epsilon 1", NOISE_SCENARIOS, epsilon=1.0),
        )
        return {one.name: one for one in experiments}
