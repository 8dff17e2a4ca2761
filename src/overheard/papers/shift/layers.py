"""Figure 6: the cosine similarity layer by layer, of a model without a federation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.drawing.plates import Plate
from overheard.papers.shift.centralised import AUDIT, EVEN, REDUCED
from overheard.papers.shift.differences import CENTRALISED, common
from overheard.papers.shift.divergence import all_hold, is_above, less, mean_by_run
from overheard.papers.shift.drawings import normalised, plate
from overheard.papers.shift.experiment import Followings, ShiftAnswer, ShiftExperiment
from overheard.papers.shift.measure import INFORMATION, LeakageMeasure, source_of_leakage
from overheard.papers.shift.plans import centralised
from overheard.papers.shift.words import by_answer, number
from overheard.papers.shift.world import MNIST, ShiftScenario, ShiftSize
from overheard.plans.plan import Plan
from overheard.questions.shift.attacks.shift import Information
from overheard.report.experiment_page import Holds
from overheard.statistics.estimate import Estimate

LAYERS = {
    "0": "convolution of 32",
    "2": "convolution of 64",
    "6": "linear 128",
    "8": "linear 10",
}
"""The layers of `shift_conv` that have weights, first to last."""

NORMALISED = (
    "Normalised: each run is brought to 0..1 by its own smallest and largest value; the paper "
    "does not say how it normalises."
)


@final
@dataclass(frozen=True, slots=True)
class LayersExperiment(ShiftExperiment):
    """One model, an epoch a round, and one measure a layer.

    Args:
        world: whose data, images.
        reduced: how it is run in a hurry.
        name: of the figure.

    """

    world: ShiftScenario = MNIST
    reduced: ShiftSize = REDUCED
    name: str = "figure6"

    @property
    def title(self) -> str:
        """What the figure shows."""
        return (
            f"Cosine similarity layer by layer around a shift: one model on {self.world.name}"
        )

    @property
    def differences(self) -> str:
        """How our setting departs from the paper's."""
        return f"{common(self.world)} {CENTRALISED} {NORMALISED}"

    def measures(self) -> tuple[LeakageMeasure, ...]:
        """The cosine of each kind of information at each layer."""
        return tuple(_at(kind, layer) for kind in INFORMATION for layer in LAYERS)

    def size(self, *, quick: bool) -> ShiftSize:
        """How much is run."""
        return self.reduced if quick else self.world.full

    def audits(self, size: ShiftSize) -> Mapping[str, Plan]:
        """One audit."""
        return {AUDIT: centralised(self.world, size, EVEN, self.measures())}

    def plates(self, told: Mapping[str, Followings]) -> tuple[Plate, ...]:
        """A panel for each kind of information, a line a layer."""
        one = told[AUDIT]
        panels = [
            (
                f"cosine of {kind}",
                {
                    words: normalised(one.of(_at(kind, layer)))
                    for layer, words in LAYERS.items()
                },
            )
            for kind in INFORMATION
        ]
        return (plate("Figure 6: layer by layer, normalised", panels, one.figures),)

    def answers(self, told: Mapping[str, Followings]) -> Mapping[str, ShiftAnswer]:
        """Whether the last layer lies farther off its trend than the first."""
        leads = {kind: _lead(told[AUDIT], kind) for kind in INFORMATION}
        holds: dict[str, Holds] = {kind: is_above(lead, 0.0) for kind, lead in leads.items()}
        words = {
            kind: f"deviation of the last layer minus that of the first: {number(lead)}"
            for kind, lead in leads.items()
        }
        return {
            "later_layers_tell_more": ShiftAnswer(
                all_hold(list(holds.values())), by_answer(holds)
            ),
            "weights_react_late": ShiftAnswer(holds["weights"], words["weights"]),
            "representations_react_late": ShiftAnswer(
                holds["representations"], words["representations"]
            ),
        }


def _at(information: Information, layer: str) -> LeakageMeasure:
    return source_of_leakage(information, "cosine", layer)


def _lead(told: Followings, information: Information) -> Estimate | None:
    first, *_, last = (told.divergence(_at(information, layer)).deviations for layer in LAYERS)
    return mean_by_run(less(last, first))
