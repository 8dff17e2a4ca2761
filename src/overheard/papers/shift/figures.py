"""The numbers of an experiment: divergences beside those of the control, and the AUC."""

from collections.abc import Sequence

from overheard.core.scorer import Better
from overheard.findings.finding import Audit
from overheard.findings.row import Row
from overheard.papers.figure import Figure
from overheard.papers.reading import BOOTSTRAP
from overheard.papers.shift.divergence import BEFORE, Divergence, mean_by_run
from overheard.papers.shift.measure import LeakageMeasure
from overheard.plans.plan import Plan
from overheard.questions.shift.statistics.detection import detection_rows
from overheard.report.experiment_page import Reading
from overheard.statistics.estimate import Estimate

OF_OURS = ("auc", "detection_rate", "false_alarm_rate")
"""What is told of our own detector, wherever it runs beside the paper's attacks."""

UNTOLD = "; no run has a trend at that round"


def divergence_figures(
    prefix: str, where: str, measure: LeakageMeasure, told: Divergence
) -> tuple[Figure, ...]:
    """How far a measure lies off its trend, beside its control, and in standard errors.

    Args:
        prefix: with which their names begin.
        where: what they were measured on.
        measure: which.
        told: of it.

    """
    off, calm = "off its trend at the shift", f"off its trend, {BEFORE} rounds before"
    rows: tuple[tuple[str, str, Estimate | None, Better | None], ...] = (
        ("divergence", off, mean_by_run(told.shifted), "higher"),
        ("control", f"{off}, if nothing shifts", mean_by_run(told.control), None),
        (
            "before",
            calm,
            mean_by_run(told.before),
            None,
        ),
        ("over_control", f"{off}, minus if nothing shifts", told.over_control, "higher"),
        ("deviation", f"{off}, in standard errors", told.deviation, "higher"),
    )
    return tuple(
        _figure(f"{prefix}{measure.key}_{name}", f"{where}; {measure.name}: {words}", of, way)
        for name, words, of, way in rows
    )


def auc_figures(
    prefix: str, where: str, audit: Audit, plan: Plan, measures: Sequence[LeakageMeasure]
) -> tuple[Figure, ...]:
    """How well each measure, and our own detector, tells runs with a shift from controls.

    Args:
        prefix: with which their names begin.
        where: what they were measured on.
        audit: what was found.
        plan: that was carried out.
        measures: whose attacks the plan's first threat tries.

    """
    rows = {(row.attack, row.score): row for row in detection_rows(audit.findings, BOOTSTRAP)}
    theirs = plan.threats[0]
    figures = [
        _of_row(
            f"{prefix}{one.key}_auc",
            f"{where}; {one.name}: chance to be farther off than a control, blind 0.5",
            rows.get((theirs.named(one.attack), "auc_told")),
        )
        for one in measures
    ]
    for threat in plan.threats[1:]:
        for own in threat.attacks:
            figures += [
                _of_row(
                    f"{prefix}ours_{score}",
                    f"{where}; our own {own.name}, not told the round: "
                    + score.replace("_", " "),
                    rows.get((threat.named(own), score)),
                )
                for score in OF_OURS
            ]
    return tuple(figures)


def reading_figures(readings: Sequence[Reading]) -> tuple[Figure, ...]:
    """Whether each sentence of the paper holds: 1 = yes, 0 = no, none = undecided.

    What is published is 1: the paper says so.
    """
    holds = {"yes": 1.0, "no": 0.0, "undecided": None}
    return tuple(
        Figure(
            f"reading_{one.key}",
            f"sentences of the paper, 1 = holds; “{one.says}”: {one.holds}: {one.because}",
            holds[one.holds],
            None,
            None,
            1.0,
            None,
        )
        for one in readings
    )


def _figure(name: str, words: str, told: Estimate | None, better: Better | None) -> Figure:
    if told is None:
        return Figure(name, words + UNTOLD, None, None, None, None, better)
    return Figure(name, words, told.mean, told.low, told.high, None, better)


def _of_row(name: str, words: str, row: Row | None) -> Figure:
    if row is None:
        return Figure(name, f"{words}; not measured", None, None, None, None, "higher")
    value = row.value
    return Figure(name, words, value.mean, value.low, value.high, None, row.better)
