"""The values of an experiment: divergences with the control's, and the AUC."""

from collections.abc import Sequence

from overheard.core.scorer import Better
from overheard.findings.finding import Audit
from overheard.findings.score_row import ScoreRow
from overheard.papers.figure import Figure
from overheard.papers.reading import BOOTSTRAP
from overheard.papers.shift.divergence import BEFORE, Divergence, mean_by_run
from overheard.papers.shift.measure import LeakageMeasure
from overheard.plans.plan import Plan
from overheard.questions.shift.statistics.detection import detection_rows
from overheard.report.experiment_page import PaperStatement
from overheard.statistics.estimate import Estimate

OF_OURS = ("auc", "detection_rate", "false_alarm_rate")
"""The reported scores of Overheard's detector, if it runs next to the paper's attacks."""

UNTOLD = "; no run has a trend at that round"


def divergence_figures(
    prefix: str, context: str, measure: LeakageMeasure, divergence: Divergence
) -> tuple[Figure, ...]:
    """Return a measure's divergence from its trend, the control's, and in standard errors.

    Args:
        prefix: prefix of the values' names.
        context: description of what they were measured on.
        measure: measure.
        divergence: divergence of the measure.

    """
    at_shift, before = (
        "divergence from its trend at the shift",
        f"divergence from its trend, {BEFORE} rounds before",
    )
    rows: tuple[tuple[str, str, Estimate | None, Better | None], ...] = (
        ("divergence", at_shift, mean_by_run(divergence.shifted), "higher"),
        ("control", f"{at_shift}, in the control", mean_by_run(divergence.control), None),
        (
            "before",
            before,
            mean_by_run(divergence.before),
            None,
        ),
        ("over_control", f"{at_shift}, minus the control's", divergence.over_control, "higher"),
        ("deviation", f"{at_shift}, in standard errors", divergence.deviation, "higher"),
    )
    return tuple(
        _figure(
            f"{prefix}{measure.key}_{name}",
            f"{context}; {measure.name}: {words}",
            estimate,
            better,
        )
        for name, words, estimate, better in rows
    )


def auc_figures(
    prefix: str, context: str, audit: Audit, plan: Plan, measures: Sequence[LeakageMeasure]
) -> tuple[Figure, ...]:
    """Return how well each measure, and Overheard's detector, separates shifts from controls.

    Args:
        prefix: prefix of the values' names.
        context: description of what they were measured on.
        audit: results of the audit.
        plan: plan of the audit.
        measures: measures, each with an attack in the plan's first threat.

    """
    rows = {(row.attack, row.score): row for row in detection_rows(audit.findings, BOOTSTRAP)}
    paper_threat = plan.threats[0]
    values = [
        _of_row(
            f"{prefix}{one.key}_auc",
            f"{context}; {one.name}: probability of a larger divergence than a control; a "
            "guess has 0.5",
            rows.get((paper_threat.attack_name(one.attack), "auc_told")),
        )
        for one in measures
    ]
    for threat in plan.threats[1:]:
        for detector in threat.attacks:
            values += [
                _of_row(
                    f"{prefix}ours_{score}",
                    f"{context}; Overheard's {detector.name}, which does not know the round: "
                    + score.replace("_", " "),
                    rows.get((threat.attack_name(detector), score)),
                )
                for score in OF_OURS
            ]
    return tuple(values)


def reading_figures(readings: Sequence[PaperStatement]) -> tuple[Figure, ...]:
    """Return whether each statement of the paper holds: 1 = yes, 0 = no, none = undecided.

    The published value is 1, as the paper makes the statement.
    """
    holds = {"yes": 1.0, "no": 0.0, "undecided": None}
    return tuple(
        Figure(
            f"reading_{one.key}",
            f"statements of the paper, 1 = holds; “{one.says}”: {one.holds}: {one.because}",
            holds[one.holds],
            None,
            None,
            1.0,
            None,
        )
        for one in readings
    )


def _figure(name: str, words: str, estimate: Estimate | None, better: Better | None) -> Figure:
    if estimate is None:
        return Figure(name, words + UNTOLD, None, None, None, None, better)
    return Figure(name, words, estimate.mean, estimate.low, estimate.high, None, better)


def _of_row(name: str, words: str, row: ScoreRow | None) -> Figure:
    if row is None:
        return Figure(name, f"{words}; not measured", None, None, None, None, "higher")
    value = row.value
    return Figure(name, words, value.mean, value.low, value.high, None, row.better)
