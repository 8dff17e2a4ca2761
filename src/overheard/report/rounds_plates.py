"""Figures over rounds: leakage of each round, and accuracy of the global model."""

from collections.abc import Sequence

from overheard.drawing.charts import Course, highest, legend_chart, rounds_chart
from overheard.drawing.plates import Panel, Plate, Table
from overheard.findings.exposures import (
    Arm,
    Case,
    Exposure,
    by_threat,
    headline_row,
    labels_across,
)
from overheard.findings.figures import NO_FIGURE, SPACE, Measure, percent
from overheard.findings.names import shown, told_apart
from overheard.findings.row import Row
from overheard.plans.registries import row_measure
from overheard.statistics.estimate import Estimate

ACCURACY = Measure("Accuracy of the global model", f"{SPACE}%", 100.0)


def rounds_plates(every: Sequence[Arm]) -> tuple[Plate, ...]:
    """Return the headline score of each single round, with one panel per arm."""
    return tuple(
        _rounds_plate(title, exposures, measured)
        for title, exposures in by_threat(every).items()
        if (measured := [one for one in exposures if any(c.by_round for c in one.cases)])
    )


def _rounds_plate(
    title: str, exposures: Sequence[Exposure], measured: Sequence[Exposure]
) -> Plate:
    measure = row_measure(headline_row(exposures))
    names = sorted({case.attack for exposure in measured for case in exposure.cases})
    labels = labels_across(measured)
    courses = {
        exposure.arm: [_course(case, names.index(case.attack)) for case in exposure.cases]
        for exposure in measured
    }
    lines = [line for series in courses.values() for line in series]
    rounds = sorted({number for line in lines for number in line.points})
    top = highest(lines)
    return Plate(
        title,
        f"{measure.title}{measure.unit and ','}{measure.unit}, from a single round; “all” = "
        "from all rounds together. Vertical lines are 95 % intervals."
        f"{_unheard(exposures, measured)}",
        legend_chart(
            list(told_apart([labels[name] for name in names]).values()),
            any(line.blind for line in lines),
            f"Legend: {title}",
        ),
        tuple(
            Panel(
                shown(arm),
                rounds_chart(
                    series,
                    rounds,
                    measure.factor,
                    top,
                    f"Score by round: {title}, {shown(arm)}",
                ),
            )
            for arm, series in courses.items()
        ),
        Table(
            f"{measure.title}{measure.unit and ','}{measure.unit} by observed round: {title}",
            ("Arm", "Attack", "Rounds", "Result", "95 % interval", "Uninformed guess"),
            tuple(
                line
                for exposure in measured
                for case in exposure.cases
                for line in _round_lines(exposure.arm, case, measure)
            ),
            3,
        ),
        True,
    )


def _unheard(exposures: Sequence[Exposure], measured: Sequence[Exposure]) -> str:
    missing = [shown(one.arm) for one in exposures if one not in measured]
    return f" Not measured: {', '.join(missing)}." if missing else ""


def _course(case: Case, index: int) -> Course:
    return Course(
        shown(case.label),
        index,
        {number: row.value for number, row in case.by_round.items()},
        case.row.value if len(case.row.rounds) > 1 else None,
        {n: row.blind for n, row in case.by_round.items() if row.blind is not None},
    )


def _round_lines(arm: str, case: Case, measure: Measure) -> list[tuple[str, ...]]:
    by_rounds: list[tuple[str, Row]] = [(str(n), row) for n, row in case.by_round.items()]
    if len(case.row.rounds) > 1:
        by_rounds.append((f"all {len(case.row.rounds)}", case.row))
    return [
        (
            shown(arm),
            shown(case.label),
            name,
            measure.tell(row.value.mean),
            measure.span(row.value),
            measure.tell(row.blind),
        )
        for name, row in by_rounds
    ]


def accuracy_plate(every: Sequence[Arm]) -> Plate | None:
    """Return the accuracy of the global model by round; None if no arm measured it."""
    tested = [arm for arm in every if arm.accuracy_by_round]
    if not tested:
        return None
    courses = [
        Course(
            shown(arm.name),
            index,
            {n: Estimate(value, None, None) for n, value in arm.accuracy_by_round.items()},
            None,
            {},
        )
        for index, arm in enumerate(tested)
    ]
    rounds = sorted({number for line in courses for number in line.points})
    return Plate(
        ACCURACY.title,
        "Test accuracy of the global model that is broadcast in each round; mean over runs.",
        legend_chart([line.name for line in courses], False, "Legend: accuracy by round"),
        (
            Panel(
                "",
                rounds_chart(
                    courses, rounds, ACCURACY.factor, highest(courses), "Accuracy by round"
                ),
            ),
        ),
        Table(
            "Accuracy of the global model by round",
            ("Round", *(line.name for line in courses)),
            tuple(
                (
                    str(number),
                    *(
                        percent(line.points[number].mean)
                        if number in line.points
                        else NO_FIGURE
                        for line in courses
                    ),
                )
                for number in rounds
            ),
            1,
        ),
        False,
    )
