"""Figures 7 to 10 of the shift paper: federations."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from statistics import correlation

from overheard.drawing.figures import Panel as Drawing
from overheard.drawing.figures import ReportFigure
from overheard.plans.plan import Plan
from overheard.statistics.estimate import Estimate
from overheard_studies.runs import StudyRuns
from overheard_studies.shift.band_charts import ScatterPoint, diagonal_chart
from overheard_studies.shift.charts import bands_figure
from overheard_studies.shift.measured import (
    Divergence,
    RunValues,
    mean_over_runs,
    subtract_runs,
)
from overheard_studies.shift.setting import (
    CLIENTS,
    LOSS,
    LeakageMeasure,
    ShiftScenario,
    ShiftSize,
    build_federated_plan,
    format_ratio,
)
from overheard_studies.shift.studies import (
    Audits,
    Statistics,
    Tests,
    build_study,
    exchange_tests,
    figure_of,
    loss_keeps_the_trend,
    measured_values,
    source_tests,
)
from overheard_studies.study import (
    Study,
    Values,
)
from overheard_studies.values import tabulate_values

EVEN_SHARES = (0.6, 0.7, 0.8, 0.9)
"""Shares of even labels after the shift; the control of each has 0.5."""


SUBTLE_SHARES = (0.6, 0.7)
"""The shares that count as subtle; the paper does not define it."""


LINEAR_CORRELATION = 0.9
"""The correlation above which a relationship counts as linear."""


FEW_CLIENTS, MANY_CLIENTS = 2, 5
"""The numbers of clients that are compared for dilution: both have one shifting client."""


SIGNAL = {
    "words": "the source exceeds its control by more than the loss does, both in standard "
    "deviations of controls"
}


def lead_of_signal(source: Divergence, loss: Divergence) -> Estimate | None:
    """Return by how much more the source exceeds its controls than the loss, over runs."""
    return mean_over_runs(subtract_runs(source.signals, loss.signals))


def sensitivity(name: str, scenario: ShiftScenario, source: LeakageMeasure) -> Study:
    """Return a part of Figure 7: two clients, one of which shifts, at several severities."""
    measures = (source, LOSS)
    keys = {f"even_{100 * even:.0f}": even for even in EVEN_SHARES}
    title = f"Sensitivity of the {source.name} against validation loss, {scenario.name}"

    def of(
        measure: LeakageMeasure, audits: Audits, shares: Sequence[float] = EVEN_SHARES
    ) -> Mapping[str, Divergence]:
        return {
            format_ratio(even): audits[key].divergence(measure)
            for key, even in keys.items()
            if even in shares and key in audits
        }

    def subtle(measure: LeakageMeasure, audits: Audits) -> Mapping[str, Divergence]:
        return of(measure, audits, SUBTLE_SHARES)

    def loss_shows(audits: Audits) -> Statistics:
        return {ratio: one.over_control for ratio, one in subtle(LOSS, audits).items()}

    def loss_is_silent(audits: Audits) -> Statistics:
        losses, severe = of(LOSS, audits), format_ratio(EVEN_SHARES[-1])
        silent = {ratio: one.hides_shift for ratio, one in subtle(LOSS, audits).items()}
        return {**silent, f"shows at {severe}": losses[severe].shows_shift}

    def leads(audits: Audits) -> Statistics:
        losses = of(LOSS, audits)
        return {
            ratio: mean_over_runs(subtract_runs(one.deviations, losses[ratio].deviations))
            for ratio, one in of(source, audits).items()
        }

    def out_of_order(audits: Audits) -> Statistics:
        return {
            f"{mild} above {severe}": mean_over_runs(subtract_runs(one.shifted, other.shifted))
            for (mild, one), (severe, other) in combinations(of(source, audits).items(), 2)
        }

    def signal_leads(audits: Audits) -> Statistics:
        losses = of(LOSS, audits)
        return {
            ratio: lead_of_signal(one, losses[ratio])
            for ratio, one in of(source, audits).items()
        }

    def draw(runs: StudyRuns, audits: Audits, values: Values) -> Iterator[ReportFigure]:
        sources, losses = of(source, audits), of(LOSS, audits)
        mild = next(iter(sources))
        controls = losses[mild].control_deviations, sources[mild].control_deviations
        dots = _dot(format_ratio(0.5), True, *controls)
        for ratio, one in sources.items():
            dots += _dot(ratio, False, losses[ratio].deviations, one.deviations)
        chart = diagonal_chart(
            dots,
            "validation loss, divergence in standard errors",
            f"{source.name}, divergence in standard errors",
            title,
        )
        yield ReportFigure(
            f"Figure {name.removeprefix('figure')}: divergences, means over runs",
            "Above the line the source diverges more from its trend than the validation loss. "
            "Hollow dots: the control, with an exchange of examples and no shift.",
            None,
            (Drawing("", chart),),
            tabulate_values("Divergences at each severity", measured_values(values)),
            True,
        )

    tests: Tests = {
        **exchange_tests(partial(of, source)),
        **source_tests(
            "subtle_shifts_show", "subtle_shifts_break_the_trend", partial(subtle, source)
        ),
        "loss_is_silent_at_subtle": (loss_is_silent, {}),
        **loss_keeps_the_trend(partial(subtle, LOSS)),
        "loss_is_not_silent": (loss_shows, {"any_suffices": True}),
        "above_the_diagonal": (leads, {}),
        "source_tells_more": (signal_leads, SIGNAL),
        "severity_is_not_told": (out_of_order, {"any_suffices": True}),
        "severity_is_told": (
            lambda audits: {"": mean_over_runs(_correlations(of(source, audits)))},
            {
                "margin": LINEAR_CORRELATION,
                "words": f"above {LINEAR_CORRELATION} it counts as linear: correlation of "
                "severity and divergence",
            },
        ),
    }
    plans = {
        key: partial(_federated_plan, scenario, 2, even, measures) for key, even in keys.items()
    }
    return build_study(name, title, scenario, ("severity",), measures, plans, tests, draw)


def scalability(name: str, scenario: ShiftScenario, source: LeakageMeasure) -> Study:
    """Return Figure 8, 9 or 10: two to ten clients, of which one shifts, or three of ten."""
    measures = (source, LOSS)
    keys = {f"clients_{number}": number for number in CLIENTS}

    def of(measure: LeakageMeasure, audits: Audits) -> Mapping[str, Divergence]:
        return {
            f"{number} clients": audits[key].divergence(measure)
            for key, number in keys.items()
            if key in audits
        }

    def dilution(audits: Audits) -> Statistics:
        few, many = (
            audits[f"clients_{number}"].divergence(source).deviations
            for number in (FEW_CLIENTS, MANY_CLIENTS)
        )
        return {"dilution": mean_over_runs(subtract_runs(few, many))}

    def draw(runs: StudyRuns, audits: Audits, values: Values) -> Iterator[ReportFigure]:
        panels = [
            (
                f"{part}: {one.name}",
                {
                    f"{number} clients": audits[key].series_of(one)
                    for key, number in keys.items()
                    if key in audits
                },
            )
            for part, one in zip("ab", measures, strict=True)
        ]
        title = f"Figure {figure_of(name).removeprefix('figure')}"
        yield bands_figure(title, panels, measured_values(values))

    def signal_leads(audits: Audits) -> Statistics:
        losses = of(LOSS, audits)
        return {n: lead_of_signal(one, losses[n]) for n, one in of(source, audits).items()}

    tests: Tests = {
        **exchange_tests(partial(of, source)),
        **source_tests("shows_at_every_number", "breaks_at_every_number", partial(of, source)),
        "loss_is_silent": (
            lambda audits: {n: one.hides_shift for n, one in of(LOSS, audits).items()},
            {},
        ),
        **loss_keeps_the_trend(partial(of, LOSS)),
        "source_tells_more": (signal_leads, SIGNAL),
        "is_diluted": (
            dilution,
            {
                "audits": tuple(f"clients_{n}" for n in (FEW_CLIENTS, MANY_CLIENTS)),
                "words": f"deviation among {FEW_CLIENTS} clients minus that among "
                f"{MANY_CLIENTS}, in standard errors",
            },
        ),
    }
    plans = {
        key: partial(_federated_plan, scenario, number, scenario.even_share, measures)
        for key, number in keys.items()
    }
    title = (
        f"The {source.name} around a shift to {format_ratio(scenario.even_share)} by number of "
        f"clients, {scenario.label}"
    )
    return build_study(
        name,
        title,
        scenario,
        ("scalability",),
        measures,
        plans,
        tests,
        draw,
        first=f"clients_{FEW_CLIENTS}",
    )


def _federated_plan(
    scenario: ShiftScenario,
    clients: int,
    even_share: float,
    measures: Sequence[LeakageMeasure],
    size: ShiftSize,
) -> Plan:
    return build_federated_plan(scenario, size, clients, even_share, measures)


def _dot(name: str, is_control: bool, across: RunValues, up: RunValues) -> list[ScatterPoint]:
    x, y = mean_over_runs(across), mean_over_runs(up)
    return [] if x is None or y is None else [ScatterPoint(name, x.mean, y.mean, is_control)]


def _correlations(sources: Mapping[str, Divergence]) -> RunValues:
    """Return the correlation of severity and divergence by run, with the control at 0.5."""
    correlations = []
    first, *_ = sources.values()
    for index, control in enumerate(first.control):
        run = [control, *(one.shifted[index] for one in sources.values())]
        values = [value for value in run if value is not None]
        varies = len(values) == len(run) and len(set(values)) > 1
        correlations.append(correlation([0.5, *EVEN_SHARES], values) if varies else None)
    return tuple(correlations)
