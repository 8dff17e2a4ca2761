"""Table 5 and Figure 9: re-identification from one layer of an update at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from overheard.learning.models.mlp import Mlp
from overheard.linkage.layers import Layer
from overheard.plans.plan import Plan
from overheard_studies.deanonymization.charts import ValueSeries, series_figure
from overheard_studies.deanonymization.differences import common_differences
from overheard_studies.deanonymization.identity_attacks import (
    UPDATE_SOURCES,
    build_published_attack,
)
from overheard_studies.deanonymization.plans import (
    build_known_user_settings,
    build_plan,
    describe_setting,
    threat_per_update,
)
from overheard_studies.deanonymization.published_numbers import published_depth_precision
from overheard_studies.deanonymization.result_rows import (
    PRECISION,
    ResultRows,
    build_result_rows,
)
from overheard_studies.deanonymization.scenarios import IdentityScenario
from overheard_studies.experiment import Experiment
from overheard_studies.page_content import IllustratedExperiment, PageContent
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.runs import ExperimentRuns

TEXT_LAYERS: Mapping[str, Layer] = {
    "embedding": 0,
    "lstm": 1,
    "fully_connected": 2,
    "output_bias": "last_bias",
    "all": "all",
}


@final
@dataclass(frozen=True, slots=True)
class LayeredScenario:
    """A scenario and the layers of its model, from first to last."""

    scenario: IdentityScenario
    layers: Mapping[str, Layer]


def perceptron_scenario(scenario: IdentityScenario, hidden: int) -> LayeredScenario:
    """Replace the scenario's model with a perceptron of `hidden` hidden layers of 64 units."""
    return LayeredScenario(
        replace(scenario, model=Mlp((64,) * hidden)),
        {
            **{f"hidden_{depth + 1}": depth for depth in range(hidden)},
            "fully_connected": hidden,
            "output_bias": "last_bias",
            "all": "all",
        },
    )


SHALLOW_DEPTH, DEEP_DEPTH = 2, 4
"""Hidden layers; the paper has 27 convolutions, which need more images than are available."""


@final
@dataclass(frozen=True, slots=True)
class DepthExperiment(Experiment, IllustratedExperiment):
    """The published attack on one layer at a time.

    Args:
        name: name of the table or figure.
        panels: scenarios with their layers.
        reduced: the same for a quick run.

    """

    name: str
    panels: tuple[LayeredScenario, ...]
    reduced: tuple[LayeredScenario, ...]

    @property
    def title(self) -> str:
        """Title of the experiment."""
        return "Re-identification by the depth of the layer that is read"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common_differences(one.scenario for one in self.panels)} The prior "
            "examples are random ones. "
            "In the paper's figure the bubbles show numbers of parameters; their vertical "
            "positions could not be read. A layer of more than 8,192 numbers is projected to "
            "2,048. The perceptrons are this project's and also stand in for a "
            "MobileNet: in a trial of 24 rounds, a fresh MobileNet learned "
            "nothing from the 11 images that a person has in Omniglot."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per data set, with the attack on each layer."""
        return {
            one.scenario.key: build_plan(
                one.scenario,
                build_known_user_settings("random"),
                (
                    threat_per_update(
                        tuple(
                            build_published_attack(one.scenario, source, layer)
                            for source in UPDATE_SOURCES
                            for layer in one.layers.values()
                        )
                    ),
                ),
            )
            for one in (self.reduced if quick else self.panels)
        }

    def read_values(self, runs: ExperimentRuns) -> tuple[ReproducedValue, ...]:
        """Return the average precision and times chance by layer."""
        full = self.plans(quick=False)
        return tuple(
            value
            for one in self.panels
            if (key := one.scenario.key) in runs.audits
            for value in _read_panel(
                one,
                build_result_rows(runs.audits[key]),
                runs.plans[key],
                describe_setting(one.scenario, runs.plans[key], full.get(key)),
            )
        )

    def page_content(
        self, runs: ExperimentRuns, values: Sequence[ReproducedValue]
    ) -> PageContent:
        """Draw the average precision by depth, with a line for each source of updates."""
        by_name = {one.name: one for one in values}
        page_figures = []
        for one in self.panels:
            if one.scenario.key in runs.audits:
                lines = [
                    ValueSeries(
                        f"{source} updates",
                        range(len(one.layers)),
                        [
                            by_name[f"{one.scenario.key}_{source}_{layer}_{PRECISION}"]
                            for layer in one.layers
                        ],
                    )
                    for source in UPDATE_SOURCES
                ]
                names = ", ".join(f"{n} = {name}" for n, name in enumerate(one.layers))
                page_figures.append(
                    series_figure(
                        f"By depth: {one.scenario.name}", lines, f"layer ({names})", PRECISION
                    )
                )
        return PageContent(tuple(page_figures))


def _read_panel(
    one: LayeredScenario, rows: ResultRows, run: Plan, context: str
) -> list[ReproducedValue]:
    (threat,), key = run.threats, one.scenario.key
    variants = [(source, name) for source in UPDATE_SOURCES for name in one.layers]
    values = []
    for attack, (source, layer) in zip(threat.attacks, variants, strict=True):
        values += [
            rows.reproduced_value(
                f"{key}_{source}_{layer}_{score}",
                f"{context}; {layer.replace('_', ' ')}, {source} updates: "
                + score.replace("_", " "),
                (threat.attack_name(attack), score),
                published_depth_precision(one.scenario.paper, layer)
                if (source, score) == ("shadow", PRECISION)
                else None,
            )
            for score in (PRECISION, "times_chance")
        ]
        values += rows.baseline_values(
            f"{key}_{source}_{layer}",
            f"{context}; {layer}, {source}",
            threat.attack_name(attack),
        )
    return values
