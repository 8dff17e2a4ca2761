"""Table 5 and Figure 9: re-identification from one layer of an update at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from overheard.learning.models.mlp import Mlp
from overheard.linkage.layers import Layer
from overheard.papers.deanonymization.differences import common
from overheard.papers.deanonymization.drawings import Series, series_plate
from overheard.papers.deanonymization.identifiers import SOURCES, published
from overheard.papers.deanonymization.plans import every_update, people, plan, setting
from overheard.papers.deanonymization.printed import at_depth
from overheard.papers.deanonymization.rows import PRECISION, Rows, rows_of
from overheard.papers.deanonymization.world import IdentityScenario
from overheard.papers.drawn import Drawing, Drawn
from overheard.papers.experiment import Experiment
from overheard.papers.figure import Figure
from overheard.papers.runs import Runs
from overheard.plans.plan import Plan

TEXT: Mapping[str, Layer] = {
    "embedding": 0,
    "lstm": 1,
    "fully_connected": 2,
    "output_bias": "last_bias",
    "all": "all",
}


@final
@dataclass(frozen=True, slots=True)
class Layered:
    """A scenario and the layers of its model, from first to last."""

    world: IdentityScenario
    layers: Mapping[str, Layer]


def perceptron(scenario: IdentityScenario, hidden: int) -> Layered:
    """Replace the scenario's model with a perceptron of `hidden` hidden layers of 64 units."""
    return Layered(
        replace(scenario, model=Mlp((64,) * hidden)),
        {
            **{f"hidden_{depth + 1}": depth for depth in range(hidden)},
            "fully_connected": hidden,
            "output_bias": "last_bias",
            "all": "all",
        },
    )


SHALLOW, DEEP = 2, 4
"""Hidden layers; the paper has 27 convolutions, which need more images than are available."""


@final
@dataclass(frozen=True, slots=True)
class DepthExperiment(Experiment, Drawn):
    """The published attack on one layer at a time.

    Args:
        name: name of the table or figure.
        panels: scenarios with their layers.
        reduced: the same for a quick run.

    """

    name: str
    panels: tuple[Layered, ...]
    reduced: tuple[Layered, ...]

    @property
    def title(self) -> str:
        """Title of the experiment."""
        return "Re-identification by the depth of the layer that is read"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return (
            f"{common(one.world for one in self.panels)} The prior is random. In the paper's "
            "figure the bubbles show numbers of parameters; their heights are lost. A layer "
            "of more than 8,192 numbers is projected to 2,048. The perceptrons are this "
            "project's and also stand in for a MobileNet: in a trial of 24 rounds, a fresh "
            "MobileNet learned nothing from the 11 images that a person has in Omniglot."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """Return one plan per data set, with the attack on each layer."""
        return {
            one.world.key: plan(
                one.world,
                people("random"),
                (
                    every_update(
                        tuple(
                            published(one.world, source, layer)
                            for source in SOURCES
                            for layer in one.layers.values()
                        )
                    ),
                ),
            )
            for one in (self.reduced if quick else self.panels)
        }

    def figures(self, runs: Runs) -> tuple[Figure, ...]:
        """Return the average precision and times chance by layer."""
        full = self.plans(quick=False)
        return tuple(
            value
            for one in self.panels
            if (key := one.world.key) in runs.audits
            for value in _read_panel(
                one,
                rows_of(runs.audits[key]),
                runs.plans[key],
                setting(one.world, runs.plans[key], full.get(key)),
            )
        )

    def drawing(self, runs: Runs, values: Sequence[Figure]) -> Drawing:
        """Draw the average precision by depth, with a line for each source of updates."""
        by_name = {one.name: one for one in values}
        page_figures = []
        for one in self.panels:
            if one.world.key in runs.audits:
                lines = [
                    Series(
                        f"{source} updates",
                        range(len(one.layers)),
                        [
                            by_name[f"{one.world.key}_{source}_{layer}_{PRECISION}"]
                            for layer in one.layers
                        ],
                    )
                    for source in SOURCES
                ]
                names = ", ".join(f"{n} = {name}" for n, name in enumerate(one.layers))
                page_figures.append(
                    series_plate(
                        f"By depth: {one.world.name}", lines, f"layer ({names})", PRECISION
                    )
                )
        return Drawing(tuple(page_figures))


def _read_panel(one: Layered, rows: Rows, run: Plan, context: str) -> list[Figure]:
    (threat,), key = run.threats, one.world.key
    variants = [(source, name) for source in SOURCES for name in one.layers]
    values = []
    for attack, (source, layer) in zip(threat.attacks, variants, strict=True):
        values += [
            rows.figure(
                f"{key}_{source}_{layer}_{score}",
                f"{context}; {layer.replace('_', ' ')}, {source} updates: "
                + score.replace("_", " "),
                (threat.attack_name(attack), score),
                at_depth(one.world.paper, layer)
                if (source, score) == ("shadow", PRECISION)
                else None,
            )
            for score in (PRECISION, "times_chance")
        ]
        values += rows.beside(
            f"{key}_{source}_{layer}",
            f"{context}; {layer}, {source}",
            threat.attack_name(attack),
        )
    return values
