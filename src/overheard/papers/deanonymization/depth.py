"""Table 5 and Figure 9: who sent an update by one layer of it at a time."""

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
    """A data set, and the layers of the model that is trained on it, first to last."""

    world: IdentityScenario
    layers: Mapping[str, Layer]


def perceptron(world: IdentityScenario, hidden: int) -> Layered:
    """A perceptron of so many hidden layers of 64 units in the place of the world's model."""
    return Layered(
        replace(world, model=Mlp((64,) * hidden)),
        {
            **{f"hidden_{depth + 1}": depth for depth in range(hidden)},
            "fully_connected": hidden,
            "output_bias": "last_bias",
            "all": "all",
        },
    )


SHALLOW, DEEP = 2, 4
"""Hidden layers; the paper has 27 convolutions, which need more images than are at hand."""


@final
@dataclass(frozen=True, slots=True)
class DepthExperiment(Experiment, Drawn):
    """The published attack on one layer at a time.

    Args:
        name: of the table or figure.
        panels: data sets with their layers.
        reduced: those of a run in a hurry.

    """

    name: str
    panels: tuple[Layered, ...]
    reduced: tuple[Layered, ...]

    @property
    def title(self) -> str:
        """What it shows."""
        return "Who sent an update, by the depth of the layer that is read"

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        return (
            f"{common(one.world for one in self.panels)} The prior is random. Bubbles of the "
            "paper's figure tell numbers of parameters, and their heights are lost. A layer of "
            "more than 8,192 numbers is sketched to 2,048. Perceptrons are ours, in the place "
            "of a MobileNet too: of the 11 images that a person has in Omniglot a fresh one "
            "learned nothing in a trial of 24 rounds."
        )

    def plans(self, *, quick: bool) -> Mapping[str, Plan]:
        """One audit a data set, with the attack on each layer."""
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
        """Average precision and times chance by layer."""
        full = self.plans(quick=False)
        return tuple(
            figure
            for one in self.panels
            if (key := one.world.key) in runs.audits
            for figure in _read(
                one,
                rows_of(runs.audits[key]),
                runs.plans[key],
                setting(one.world, runs.plans[key], full.get(key)),
            )
        )

    def drawing(self, runs: Runs, figures: Sequence[Figure]) -> Drawing:
        """Average precision by depth, a line a source."""
        told = {one.name: one for one in figures}
        plates = []
        for one in self.panels:
            if one.world.key in runs.audits:
                lines = [
                    Series(
                        f"{source} updates",
                        range(len(one.layers)),
                        [
                            told[f"{one.world.key}_{source}_{layer}_{PRECISION}"]
                            for layer in one.layers
                        ],
                    )
                    for source in SOURCES
                ]
                names = ", ".join(f"{n} = {name}" for n, name in enumerate(one.layers))
                plates.append(
                    series_plate(
                        f"By depth: {one.world.name}", lines, f"layer ({names})", PRECISION
                    )
                )
        return Drawing(tuple(plates))


def _read(one: Layered, rows: Rows, run: Plan, where: str) -> list[Figure]:
    (threat,), key = run.threats, one.world.key
    places = [(source, name) for source in SOURCES for name in one.layers]
    figures = []
    for attack, (source, layer) in zip(threat.attacks, places, strict=True):
        figures += [
            rows.figure(
                f"{key}_{source}_{layer}_{score}",
                f"{where}; {layer.replace('_', ' ')}, {source} updates: "
                + score.replace("_", " "),
                (threat.named(attack), score),
                at_depth(one.world.paper, layer)
                if (source, score) == ("shadow", PRECISION)
                else None,
            )
            for score in (PRECISION, "times_chance")
        ]
        figures += rows.beside(
            f"{key}_{source}_{layer}", f"{where}; {layer}, {source}", threat.named(attack)
        )
    return figures
