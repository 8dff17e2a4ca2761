"""The values of an experiment: divergences with the control's, and the AUC."""

from collections.abc import Sequence

from overheard.core.scorer import Better
from overheard.findings.audit import Audit
from overheard.findings.score_row import ScoreRow
from overheard.plans.plan import Plan
from overheard.questions.shift.statistics.detection import detection_rows
from overheard.report.experiment_page import PaperStatement
from overheard.statistics.estimate import Estimate
from overheard_studies.estimates import BOOTSTRAP_SEED
from overheard_studies.reproduced_value import ReproducedValue
from overheard_studies.shift.divergence import BASELINE_ROUNDS, Divergence, mean_over_runs
from overheard_studies.shift.measure import LeakageMeasure

TRACKING_SCORES = ("auc", "detection_rate", "false_alarm_rate")
"""The reported scores of Overheard's detector, if it runs next to the paper's attacks."""

NO_TREND = "; no run has a trend at that round"


def make_divergence_values(
    prefix: str, context: str, measure: LeakageMeasure, divergence: Divergence
) -> tuple[ReproducedValue, ...]:
    """Return a measure's divergence from its trend, the control's, and in standard errors.

    Args:
        prefix: prefix of the values' names.
        context: description of what they were measured on.
        measure: measure.
        divergence: divergence of the measure.

    """
    at_shift, before = (
        "divergence from its trend at the shift",
        f"divergence from its trend, {BASELINE_ROUNDS} rounds before",
    )
    rows: tuple[tuple[str, str, Estimate | None, Better | None], ...] = (
        ("divergence", at_shift, mean_over_runs(divergence.shifted), "higher"),
        ("control", f"{at_shift}, in the control", mean_over_runs(divergence.control), None),
        (
            "before",
            before,
            mean_over_runs(divergence.baseline),
            None,
        ),
        ("over_control", f"{at_shift}, minus the control's", divergence.over_control, "higher"),
        ("deviation", f"{at_shift}, in standard errors", divergence.mean_deviation, "higher"),
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


def make_auc_values(
    prefix: str, context: str, audit: Audit, plan: Plan, measures: Sequence[LeakageMeasure]
) -> tuple[ReproducedValue, ...]:
    """Return how well each measure, and Overheard's detector, separates shifts from controls.

    Args:
        prefix: prefix of the values' names.
        context: description of what they were measured on.
        audit: results of the audit.
        plan: plan of the audit.
        measures: measures, each with an attack in the plan's first threat.

    """
    rows = {
        (row.attack, row.score): row for row in detection_rows(audit.findings, BOOTSTRAP_SEED)
    }
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
                for score in TRACKING_SCORES
            ]
    return tuple(values)


def make_statement_values(readings: Sequence[PaperStatement]) -> tuple[ReproducedValue, ...]:
    """Return whether each statement of the paper holds: 1 = yes, 0 = no, none = undecided.

    The published value is 1, as the paper makes the statement.
    """
    holds = {"yes": 1.0, "no": 0.0, "undecided": None}
    return tuple(
        ReproducedValue(
            f"reading_{one.key}",
            f"statements of the paper, 1 = holds; “{one.statement}”: {one.holds}: "
            f"{one.evidence}",
            holds[one.holds],
            None,
            None,
            1.0,
            None,
        )
        for one in readings
    )


def _figure(
    name: str, words: str, estimate: Estimate | None, better: Better | None
) -> ReproducedValue:
    if estimate is None:
        return ReproducedValue(name, words + NO_TREND, None, None, None, None, better)
    return ReproducedValue(
        name, words, estimate.mean, estimate.low, estimate.high, None, better
    )


def _of_row(name: str, words: str, row: ScoreRow | None) -> ReproducedValue:
    if row is None:
        return ReproducedValue(name, f"{words}; not measured", None, None, None, None, "higher")
    value = row.value
    return ReproducedValue(name, words, value.mean, value.low, value.high, None, row.better)
