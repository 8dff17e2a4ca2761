"""The figures over rounds: what each round gave away, and what the model was worth."""

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
from overheard.plans.kinds import measure_of
from overheard.statistics.estimate import Estimate

ACCURACY = Measure("Accuracy of the global model", f"{SPACE}%", 100.0)


def rounds_plates(every: Sequence[Arm]) -> tuple[Plate, ...]:
    """The headline for each round heard alone, one panel an arm."""
    return tuple(
        _rounds_plate(asked, exposures, heard)
        for asked, exposures in by_threat(every).items()
        if (heard := [held for held in exposures if any(c.by_round for c in held.cases)])
    )


def _rounds_plate(
    asked: str, exposures: Sequence[Exposure], heard: Sequence[Exposure]
) -> Plate:
    told = measure_of(headline_row(exposures))
    names = sorted({case.attack for exposure in heard for case in exposure.cases})
    labels = labels_across(heard)
    courses = {
        exposure.arm: [_course(case, names.index(case.attack)) for case in exposure.cases]
        for exposure in heard
    }
    lines = [line for held in courses.values() for line in held]
    rounds = sorted({number for line in lines for number in line.points})
    top = highest(lines)
    return Plate(
        asked,
        f"{told.title}{told.unit and ','}{told.unit}, from one round alone; “all” = from all "
        f"rounds together. Upright lines are 95 % intervals.{_unheard(exposures, heard)}",
        legend_chart(
            list(told_apart([labels[name] for name in names]).values()),
            any(line.blind for line in lines),
            f"Legend: {asked}",
        ),
        tuple(
            Panel(
                shown(arm),
                rounds_chart(
                    held, rounds, told.factor, top, f"Error by round: {asked}, {shown(arm)}"
                ),
            )
            for arm, held in courses.items()
        ),
        Table(
            f"{told.title}{told.unit and ','}{told.unit} by round heard: {asked}",
            ("Arm", "Attack", "Rounds heard", "Attack", "95 % interval", "Blind guess"),
            tuple(
                line
                for exposure in heard
                for case in exposure.cases
                for line in _round_lines(exposure.arm, case, told)
            ),
            3,
        ),
        True,
    )


def _unheard(exposures: Sequence[Exposure], heard: Sequence[Exposure]) -> str:
    missing = [shown(held.arm) for held in exposures if held not in heard]
    return f" Not measured: {', '.join(missing)}." if missing else ""


def _course(case: Case, place: int) -> Course:
    return Course(
        shown(case.label),
        place,
        {number: row.value for number, row in case.by_round.items()},
        case.row.value if len(case.row.rounds) > 1 else None,
        {n: row.blind for n, row in case.by_round.items() if row.blind is not None},
    )


def _round_lines(arm: str, case: Case, told: Measure) -> list[tuple[str, ...]]:
    heard: list[tuple[str, Row]] = [(str(n), row) for n, row in case.by_round.items()]
    if len(case.row.rounds) > 1:
        heard.append((f"all {len(case.row.rounds)}", case.row))
    return [
        (
            shown(arm),
            shown(case.label),
            name,
            told.tell(row.value.mean),
            told.span(row.value),
            told.tell(row.blind),
        )
        for name, row in heard
    ]


def accuracy_plate(every: Sequence[Arm]) -> Plate | None:
    """Accuracy of the global model by round; None where no arm measured it."""
    tested = [arm for arm in every if arm.accuracy_by_round]
    if not tested:
        return None
    courses = [
        Course(
            shown(arm.name),
            place,
            {n: Estimate(value, None, None) for n, value in arm.accuracy_by_round.items()},
            None,
            {},
        )
        for place, arm in enumerate(tested)
    ]
    rounds = sorted({number for line in courses for number in line.points})
    return Plate(
        ACCURACY.title,
        "Share of the test set that the model sent out in each round gets right; mean over "
        "runs.",
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
