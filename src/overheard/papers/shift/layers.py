"""Figure 6: the cosine similarity by layer, for a centralized model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.drawing.figures import ReportFigure
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
"""The layers of `shift_conv` that have weights, from first to last."""

NORMALISED = (
    "Each run is scaled to 0..1 by its own smallest and largest value; the paper does not say "
    "how it normalizes."
)


@final
@dataclass(frozen=True, slots=True)
class LayersExperiment(ShiftExperiment):
    """One model with one epoch per round, and one measure per layer.

    Args:
        world: data set of images, and federation.
        reduced: size of a quick run.
        name: name of the figure.

    """

    world: ShiftScenario = MNIST
    reduced: ShiftSize = REDUCED
    name: str = "figure6"

    @property
    def title(self) -> str:
        """Title of the figure."""
        return f"Cosine similarity by layer around a shift: one model on {self.world.name}"

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return f"{common(self.world)} {CENTRALISED} {NORMALISED}"

    def measures(self) -> tuple[LeakageMeasure, ...]:
        """Return the cosine of each kind of information at each layer."""
        return tuple(_at(kind, layer) for kind in INFORMATION for layer in LAYERS)

    def size(self, *, quick: bool) -> ShiftSize:
        """Return the size of the run."""
        return self.reduced if quick else self.world.full

    def audits(self, size: ShiftSize) -> Mapping[str, Plan]:
        """Return the plan of one audit."""
        return {AUDIT: centralised(self.world, size, EVEN, self.measures())}

    def plates(self, audits: Mapping[str, Followings]) -> tuple[ReportFigure, ...]:
        """Draw a panel for each kind of information, with one line per layer."""
        measurements = audits[AUDIT]
        panels = [
            (
                f"cosine of {kind}",
                {
                    words: normalised(measurements.of(_at(kind, layer)))
                    for layer, words in LAYERS.items()
                },
            )
            for kind in INFORMATION
        ]
        return (plate("Figure 6: by layer, normalized", panels, measurements.figures),)

    def answers(self, audits: Mapping[str, Followings]) -> Mapping[str, ShiftAnswer]:
        """Check that the last layer diverges more from its trend than the first."""
        leads = {kind: _lead(audits[AUDIT], kind) for kind in INFORMATION}
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


def _lead(measurements: Followings, information: Information) -> Estimate | None:
    first, *_, last = (
        measurements.divergence(_at(information, layer)).deviations for layer in LAYERS
    )
    return mean_by_run(less(last, first))
