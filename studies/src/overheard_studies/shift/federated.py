"""Figures 7 to 10 of the shift paper: federations."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from statistics import correlation

from overheard.drawing.figures import Panel as Drawing
from overheard.drawing.figures import ReportFigure
from overheard.plans.plan import Plan
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
    EXCHANGE,
    Audits,
    Statistics,
    Tests,
    build_study,
    exchange,
    measured_values,
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

    def shows(measure: LeakageMeasure, audits: Audits) -> Statistics:
        found = of(measure, audits, SUBTLE_SHARES)
        return {ratio: one.over_control for ratio, one in found.items()}

    def loss_is_silent(audits: Audits) -> Statistics:
        losses, severe = of(LOSS, audits), format_ratio(EVEN_SHARES[-1])
        silent = {n: losses[n].hides_shift for n in of(LOSS, audits, SUBTLE_SHARES)}
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

    def first(audits: Audits) -> Statistics:
        # The control is the same for all severities.
        return exchange({source.name: next(iter(of(source, audits).values()))})

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
        "exchange_is_silent": (first, EXCHANGE),
        "subtle_shifts_show": (partial(shows, source), {}),
        "loss_is_silent_at_subtle": (loss_is_silent, {}),
        "loss_is_not_silent": (partial(shows, LOSS), {"any_suffices": True}),
        "above_the_diagonal": (leads, {}),
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
    sizes = scenario.full, scenario.reduced
    return build_study(
        name, title, scenario, sizes, ("severity",), measures, plans, tests, draw
    )


def scalability(name: str, scenario: ShiftScenario, source: LeakageMeasure) -> Study:
    """Return Figure 8, 9 or 10: two to ten clients, of which one shifts, or three of ten."""
    measures = (source, LOSS)
    keys = {f"clients_{number}": number for number in CLIENTS}

    def of(measure: LeakageMeasure, audits: Audits) -> Mapping[str, Divergence]:
        return {f"{n} clients": audits[key].divergence(measure) for key, n in keys.items()}

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
        title = f"Figure {name.removeprefix('figure')}"
        yield bands_figure(title, panels, measured_values(values))

    tests: Tests = {
        "exchange_is_silent": (lambda audits: exchange(of(source, audits)), EXCHANGE),
        "shows_at_every_number": (
            lambda audits: {n: one.over_control for n, one in of(source, audits).items()},
            {},
        ),
        "loss_is_silent": (
            lambda audits: {n: one.hides_shift for n, one in of(LOSS, audits).items()},
            {},
        ),
        "is_diluted": (
            dilution,
            {
                "words": f"deviation among {FEW_CLIENTS} clients minus that among "
                f"{MANY_CLIENTS}, in standard errors"
            },
        ),
    }
    plans = {
        key: partial(_federated_plan, scenario, number, scenario.even_share, measures)
        for key, number in keys.items()
    }
    title = (
        f"The {source.name} around a shift to {format_ratio(scenario.even_share)} by number of "
        f"clients, {scenario.name}"
    )
    sizes = scenario.full, scenario.reduced
    return build_study(
        name, title, scenario, sizes, ("scalability",), measures, plans, tests, draw
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
