"""Figure 7: divergence of a source of leakage against that of the validation loss."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from statistics import correlation
from typing import final

from overheard.drawing.band_charts import ScatterPoint, diagonal_chart
from overheard.drawing.figures import Panel, ReportFigure
from overheard.papers.numbers_table import numbers_table
from overheard.papers.shift.differences import common
from overheard.papers.shift.divergence import (
    Divergence,
    Values,
    all_hold,
    any_holds,
    is_above,
    less,
    mean_by_run,
)
from overheard.papers.shift.experiment import (
    Followings,
    ShiftAnswer,
    ShiftExperiment,
    exchange,
)
from overheard.papers.shift.measure import LOSS, LeakageMeasure
from overheard.papers.shift.plans import federation, ratio
from overheard.papers.shift.words import by_answer, number
from overheard.papers.shift.world import ShiftScenario, ShiftSize
from overheard.plans.plan import Plan
from overheard.report.experiment_page import Holds

EVEN = (0.6, 0.7, 0.8, 0.9)
"""Shares of even labels after the shift; the control of each has 0.5."""

SUBTLE = 0.7
"""The largest share that counts as subtle; the paper does not define it."""

CLIENTS = 2

LINEAR = 0.9
"""The correlation above which a relationship counts as linear."""

SEVERITIES = (
    "The paper does not say which severities it ran, how it scales both divergences, or at "
    "which scale they are plotted. Here the severities are 60-40 to 90-10 of what is held. "
    "For the Census, where most people have the even label, these ratios are relative. "
    "Divergences are reported in standard errors of each trend, with the control at 50-50; "
    "shifts up to 70-30 count as subtle."
)


@final
@dataclass(frozen=True, slots=True)
class SensitivityExperiment(ShiftExperiment):
    """Two clients, one of which shifts, at several severities.

    Args:
        name: name of the figure.
        world: data set and federation.
        source: source of leakage that the paper shows.

    """

    name: str
    world: ShiftScenario
    source: LeakageMeasure

    @property
    def title(self) -> str:
        """Title of the figure."""
        return (
            f"Sensitivity of the {self.source.name} against validation loss, {self.world.name}"
        )

    @property
    def differences(self) -> str:
        """Describe how Overheard's setting differs from the paper's."""
        return f"{common(self.world)} {SEVERITIES}"

    def measures(self) -> tuple[LeakageMeasure, ...]:
        """Return the source of leakage and the validation loss."""
        return (self.source, LOSS)

    def size(self, *, quick: bool) -> ShiftSize:
        """Return the size of the run."""
        return self.world.reduced if quick else self.world.full

    def audits(self, size: ShiftSize) -> Mapping[str, Plan]:
        """Return one plan per severity."""
        return {
            _key(even): federation(self.world, size, CLIENTS, even, self.measures())
            for even in EVEN
        }

    def plates(self, audits: Mapping[str, Followings]) -> tuple[ReportFigure, ...]:
        """Draw one point per severity, and the diagonal."""
        sources, losses = self._divergences(audits)
        dots = [
            *_dot(ratio(0.5), True, losses[EVEN[0]].control_deviations,
                  sources[EVEN[0]].control_deviations),
            *(
                dot
                for even in EVEN
                for dot in _dot(
                    ratio(even), False, losses[even].deviations, sources[even].deviations
                )
            ),
        ]  # fmt: skip
        chart = diagonal_chart(
            dots,
            "validation loss, divergence in standard errors",
            f"{self.source.name}, divergence in standard errors",
            self.title,
        )
        return (
            ReportFigure(
                f"Figure {self.name.removeprefix('figure')}: divergences, means over runs",
                "Above the line the source diverges more from its trend than the validation "
                "loss. Hollow dots: the control, with an exchange of examples and no shift.",
                None,
                (Panel("", chart),),
                numbers_table(
                    "Divergences at each severity",
                    [value for one in audits.values() for value in one.figures],
                ),
                True,
            ),
        )

    def answers(self, audits: Mapping[str, Followings]) -> Mapping[str, ShiftAnswer]:
        """Check that subtle shifts show, and how divergence depends on severity."""
        sources, losses = self._divergences(audits)
        subtle = [even for even in EVEN if even <= SUBTLE]
        shows = {ratio(even): sources[even].shows for even in subtle}
        silent: dict[str, Holds] = {ratio(even): losses[even].is_silent for even in subtle}
        silent[f"shows at {ratio(EVEN[-1])}"] = losses[EVEN[-1]].shows
        loss_shows = {ratio(even): losses[even].shows for even in subtle}
        leads = {
            ratio(even): mean_by_run(less(sources[even].deviations, losses[even].deviations))
            for even in EVEN
        }
        above = {name: is_above(lead, 0.0) for name, lead in leads.items()}
        out_of_order = {
            f"{ratio(mild)} above {ratio(severe)}": is_above(
                mean_by_run(less(sources[mild].shifted, sources[severe].shifted)), 0.0
            )
            for mild, severe in combinations(EVEN, 2)
        }
        linear = mean_by_run(_correlations(sources))
        return {
            # The control is the same for all severities.
            "exchange_is_silent": exchange({self.source.name: sources[EVEN[0]]}),
            "subtle_shifts_show": ShiftAnswer(all_hold(list(shows.values())), by_answer(shows)),
            "loss_is_silent_at_subtle": ShiftAnswer(
                all_hold(list(silent.values())), by_answer(silent)
            ),
            "loss_is_not_silent": ShiftAnswer(
                any_holds(list(loss_shows.values())), by_answer(loss_shows)
            ),
            "above_the_diagonal": ShiftAnswer(
                all_hold(list(above.values())),
                "; ".join(f"{name}: {number(lead)}" for name, lead in leads.items()),
            ),
            "severity_is_not_told": ShiftAnswer(
                any_holds(list(out_of_order.values())), by_answer(out_of_order)
            ),
            "severity_is_told": ShiftAnswer(
                is_above(linear, LINEAR),
                f"correlation of severity and divergence {number(linear)}; above {LINEAR} it "
                "counts as linear",
            ),
        }

    def _divergences(
        self, audits: Mapping[str, Followings]
    ) -> tuple[Mapping[float, Divergence], Mapping[float, Divergence]]:
        """Return the divergences of the source and of the loss, by severity."""
        return (
            {even: audits[_key(even)].divergence(self.source) for even in EVEN},
            {even: audits[_key(even)].divergence(LOSS) for even in EVEN},
        )


def _key(even: float) -> str:
    return f"even_{100 * even:.0f}"


def _dot(name: str, is_control: bool, across: Values, up: Values) -> list[ScatterPoint]:
    x, y = mean_by_run(across), mean_by_run(up)
    return [] if x is None or y is None else [ScatterPoint(name, x.mean, y.mean, is_control)]


def _correlations(sources: Mapping[float, Divergence]) -> Values:
    """Return the correlation of severity and divergence by run, with the control at 0.5."""
    correlations = []
    first = sources[EVEN[0]]
    for index, control in enumerate(first.control):
        run = [control, *(sources[even].shifted[index] for even in EVEN)]
        values = [value for value in run if value is not None]
        varies = len(values) == len(run) and len(set(values)) > 1
        correlations.append(correlation([0.5, *EVEN], values) if varies else None)
    return tuple(correlations)
