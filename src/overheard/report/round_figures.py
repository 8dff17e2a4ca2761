"""Figures over rounds: leakage of each round, and accuracy of the global model."""

from collections.abc import Sequence

from overheard.drawing.charts import RoundSeries, largest_value, legend_chart, rounds_chart
from overheard.drawing.figures import Panel, ReportFigure, ReportTable
from overheard.findings.names import make_printable, shorten_attack_names
from overheard.findings.number_format import NO_NUMBER, Measure, format_percent
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import (
    ArmResult,
    AttackResult,
    ThreatResult,
    first_headline_row,
    group_by_threat,
    labels_of_results,
)
from overheard.plans.registries import row_measure
from overheard.statistics.estimate import Estimate

PERCENT = 100.0
"""The factor from a share to per cent."""


def round_figures(arm_results: Sequence[ArmResult]) -> tuple[ReportFigure, ...]:
    """Return the headline score of each single round, with one panel per arm."""
    return tuple(
        _round_figure(title, threat_results, measured)
        for title, threat_results in group_by_threat(arm_results).items()
        if (
            measured := [
                one
                for one in threat_results
                if any(c.headline_by_round for c in one.attack_results)
            ]
        )
    )


def _round_figure(
    title: str, threat_results: Sequence[ThreatResult], measured: Sequence[ThreatResult]
) -> ReportFigure:
    measure = row_measure(first_headline_row(threat_results))
    names = sorted(
        {
            attack_result.attack
            for threat_result in measured
            for attack_result in threat_result.attack_results
        }
    )
    labels = labels_of_results(measured)
    courses = {
        threat_result.arm: [
            _round_series(attack_result, names.index(attack_result.attack))
            for attack_result in threat_result.attack_results
        ]
        for threat_result in measured
    }
    lines = [line for series in courses.values() for line in series]
    rounds = sorted({number for line in lines for number in line.points})
    top = largest_value(lines)
    return ReportFigure(
        title,
        f"{measure.title}{measure.unit and ','}{measure.unit}, from a single round; “all” = "
        "from all rounds together. Vertical lines are 95 % intervals."
        f"{_unmeasured_note(threat_results, measured)}",
        legend_chart(
            list(shorten_attack_names([labels[name] for name in names]).values()),
            any(line.guess for line in lines),
            f"Legend: {title}",
            any(value.low is not None for line in lines for value in line.points.values()),
        ),
        tuple(
            Panel(
                make_printable(arm),
                rounds_chart(
                    series,
                    rounds,
                    measure.factor,
                    top,
                    f"Score by round: {title}, {make_printable(arm)}",
                ),
            )
            for arm, series in courses.items()
        ),
        ReportTable(
            f"{measure.title}{measure.unit and ','}{measure.unit} by observed round: {title}",
            ("Arm", "Attack", "Rounds", "Result", "95 % interval", "Uninformed guess"),
            tuple(
                line
                for threat_result in measured
                for attack_result in threat_result.attack_results
                for line in _round_rows(threat_result.arm, attack_result, measure)
            ),
            3,
        ),
        True,
    )


def _unmeasured_note(
    threat_results: Sequence[ThreatResult], measured: Sequence[ThreatResult]
) -> str:
    missing = [make_printable(one.arm) for one in threat_results if one not in measured]
    return f" Not measured: {', '.join(missing)}." if missing else ""


def _round_series(attack_result: AttackResult, index: int) -> RoundSeries:
    return RoundSeries(
        make_printable(attack_result.label),
        index,
        {number: row.value for number, row in attack_result.headline_by_round.items()},
        attack_result.headline_row.value
        if len(attack_result.headline_row.rounds) > 1
        else None,
        {
            n: row.best_uninformed
            for n, row in attack_result.headline_by_round.items()
            if row.best_uninformed is not None
        },
    )


def _round_rows(
    arm: str, attack_result: AttackResult, measure: Measure
) -> list[tuple[str, ...]]:
    by_rounds: list[tuple[str, ScoreRow]] = [
        (str(n), row) for n, row in attack_result.headline_by_round.items()
    ]
    if len(attack_result.headline_row.rounds) > 1:
        by_rounds.append(
            (f"all {len(attack_result.headline_row.rounds)}", attack_result.headline_row)
        )
    return [
        (
            make_printable(arm),
            make_printable(attack_result.label),
            name,
            measure.format(row.value.mean),
            measure.format_interval(row.value),
            measure.format(row.best_uninformed),
        )
        for name, row in by_rounds
    ]


def accuracy_figure(arm_results: Sequence[ArmResult]) -> ReportFigure | None:
    """Return the accuracy of the global model by round; None if no arm measured it.

    In tasks without classes, it is the utility of the task.
    """
    tested = [arm for arm in arm_results if arm.accuracy_by_round]
    if not tested:
        return None
    utility = tested[0].utility
    courses = [
        RoundSeries(
            make_printable(arm.name),
            index,
            {n: Estimate(value, None, None) for n, value in arm.accuracy_by_round.items()},
            None,
            {},
        )
        for index, arm in enumerate(tested)
    ]
    rounds = sorted({number for line in courses for number in line.points})
    return ReportFigure(
        f"{utility.capitalize()} of the global model",
        f"Test {utility} of the global model that is broadcast in each round; mean over runs.",
        legend_chart([line.name for line in courses], False, f"Legend: {utility} by round"),
        (
            Panel(
                "",
                rounds_chart(
                    courses,
                    rounds,
                    PERCENT,
                    largest_value(courses),
                    f"{utility.capitalize()} by round",
                ),
            ),
        ),
        ReportTable(
            f"{utility.capitalize()} of the global model by round",
            ("Round", *(line.name for line in courses)),
            tuple(
                (
                    str(number),
                    *(
                        format_percent(line.points[number].mean)
                        if number in line.points
                        else NO_NUMBER
                        for line in courses
                    ),
                )
                for number in rounds
            ),
            1,
        ),
        False,
    )
