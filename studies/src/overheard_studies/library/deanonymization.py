"""Gradient-Leaks: the sender of an update, the sender's attributes, and defenses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from overheard_studies.deanonymization.attributes import AttributesExperiment
from overheard_studies.deanonymization.bias import BiasExperiment
from overheard_studies.deanonymization.cross_modal import CrossModalExperiment
from overheard_studies.deanonymization.defended import DefendedIdentityExperiment
from overheard_studies.deanonymization.depth import (
    DEEP_DEPTH,
    SHALLOW_DEPTH,
    TEXT_LAYERS,
    DepthExperiment,
    LayeredScenario,
    perceptron_scenario,
)
from overheard_studies.deanonymization.distances import DistancesExperiment
from overheard_studies.deanonymization.iid import IidExperiment
from overheard_studies.deanonymization.known_count import KnownCountExperiment
from overheard_studies.deanonymization.open_world import OpenWorldExperiment
from overheard_studies.deanonymization.prior_examples import PriorExamplesExperiment
from overheard_studies.deanonymization.reidentification import ReidentificationExperiment
from overheard_studies.deanonymization.scenarios import AGES, BLOGS, QUICK_SCENARIO, WISDM
from overheard_studies.deanonymization.stages import StagesExperiment
from overheard_studies.deanonymization.utility import UtilityExperiment
from overheard_studies.experiment import Experiment, Paper


@final
@dataclass(frozen=True, slots=True)
class DeanonymizationPaper(Paper):
    """Tables 2 to 5, Figures 2 and 6 to 12, and two numbers in the text."""

    name: ClassVar[str] = "deanonymization"
    title: ClassVar[str] = (
        "Gradient-Leaks: Understanding and Controlling Deanonymization in Federated Learning"
    )
    source: ClassVar[str] = "Orekondy, Oh, Zhang, Schiele and Fritz 2018 (arXiv 1805.05838)"

    def experiments(self) -> Mapping[str, Experiment]:
        """Return the experiments by name, in the order of the paper."""
        experiments: tuple[Experiment, ...] = (
            DistancesExperiment(),
            UtilityExperiment(),
            ReidentificationExperiment(),
            IidExperiment(),
            CrossModalExperiment(),
            OpenWorldExperiment(),
            AttributesExperiment(),
            PriorExamplesExperiment(),
            KnownCountExperiment(),
            DepthExperiment(
                "table5",
                (
                    LayeredScenario(BLOGS, TEXT_LAYERS),
                    LayeredScenario(AGES, TEXT_LAYERS),
                    perceptron_scenario(WISDM, SHALLOW_DEPTH),
                ),
                (perceptron_scenario(QUICK_SCENARIO, SHALLOW_DEPTH),),
            ),
            DepthExperiment(
                "figure9",
                (perceptron_scenario(WISDM, DEEP_DEPTH),),
                (perceptron_scenario(QUICK_SCENARIO, DEEP_DEPTH),),
            ),
            StagesExperiment(),
            BiasExperiment(),
            DefendedIdentityExperiment(),
        )
        return {one.name: one for one in experiments}
