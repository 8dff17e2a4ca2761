"""Gradient-Leaks: the sender of an update, the sender's attributes, and defenses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from overheard.papers.deanonymization.attributes import AttributesExperiment
from overheard.papers.deanonymization.bias import BiasExperiment
from overheard.papers.deanonymization.cross_modal import CrossModalExperiment
from overheard.papers.deanonymization.defended import DefendedIdentityExperiment
from overheard.papers.deanonymization.depth import (
    DEEP_DEPTH,
    SHALLOW_DEPTH,
    TEXT_LAYERS,
    DepthExperiment,
    LayeredScenario,
    perceptron_scenario,
)
from overheard.papers.deanonymization.distances import DistancesExperiment
from overheard.papers.deanonymization.iid import IidExperiment
from overheard.papers.deanonymization.known_count import KnownCountExperiment
from overheard.papers.deanonymization.open_world import OpenWorldExperiment
from overheard.papers.deanonymization.prior_examples import PriorExamplesExperiment
from overheard.papers.deanonymization.reidentification import ReidentificationExperiment
from overheard.papers.deanonymization.scenarios import AGES, BLOGS, QUICK_SCENARIO, WISDM
from overheard.papers.deanonymization.stages import StagesExperiment
from overheard.papers.deanonymization.utility import UtilityExperiment
from overheard.papers.experiment import Experiment, Paper


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
