"""Sentences on the intervals that attacks state, their own doubts, and their own errors."""

from collections import Counter
from collections.abc import Sequence

from overheard.core.claims import INTERVAL_LEVEL, LearningCurve
from overheard.drawing.sentences import bracketed_interval
from overheard.findings.finding import Finding
from overheard.findings.names import make_printable, shorten_attack_names
from overheard.findings.number_format import SPACE, Measure, format_percent
from overheard.findings.threat_results import ThreatResult

MIN_COVERAGE = 0.8
"""Coverage below which intervals are called too narrow: 0.1 below their level, which is more
than random variation over a hundred intervals."""

LEVEL_TEXT = f"{100 * INTERVAL_LEVEL:.0f}{SPACE}%"


def coverage_sentences(
    threat_result: ThreatResult, score: str, told: Measure, what: str
) -> tuple[str, ...]:
    """State how often the intervals of each attack contain the true value.

    Args:
        threat_result: the result of attacks that may state intervals.
        score: name of the coverage score.
        told: how that score is written.
        what: the quantity that an interval bounds, such as "share".

    """
    names = shorten_attack_names(
        [attack_result.label for attack_result in threat_result.attack_results]
    )
    sentences = []
    for attack_result in threat_result.attack_results:
        row = attack_result.rows_by_score.get(score)
        if row is None:
            continue
        sentence = (
            f"The {LEVEL_TEXT} intervals of {make_printable(names[attack_result.label])} "
            f"contain the true {what} for "
            f"{format_percent(row.value.mean)} of the {what}s{bracketed_interval(row, told)}"
        )
        if row.value.mean < MIN_COVERAGE:
            sentence += ": they are too narrow to be trusted"
        sentences.append(f"{sentence}.")
    return tuple(sentences)


def doubt_sentences(findings: Sequence[Finding]) -> tuple[str, ...]:
    """State each reason why an attack does not trust the intervals of these findings.

    The reasons follow from what the attacker sees, so they are known without the ground truth.
    """
    reasons = Counter(one.claimed.doubt for one in findings if one.claimed.doubt is not None)
    return tuple(
        f"Intervals not trusted here{_how_many(count, len(findings))}: "
        f"{make_printable(reason)}."
        for reason, count in reasons.items()
    )


def learning_curve_sentences(findings: Sequence[Finding]) -> tuple[str, ...]:
    """State each attacker's own error by number of virtual clients, where it was measured."""
    curves = {
        one.claimed.learning_curve: None
        for one in findings
        if one.claimed.learning_curve is not None
    }
    return tuple(map(_describe_curve, curves))


def _describe_curve(curve: LearningCurve) -> str:
    errors = ", ".join(
        f"{error:.3f} with {clients}"
        for clients, error in zip(curve.clients, curve.errors, strict=True)
    )
    stopped = (
        f"The attacker trained {curve.trained} of {curve.planned} virtual clients, as its own "
        "error hardly fell when their number was doubled"
        if curve.trained < curve.planned
        else f"The attacker trained all {curve.planned} virtual clients"
    )
    return f"{stopped}. Its own error (L1): {errors or 'not measured with so few'}."


def _how_many(count: int, claims: int) -> str:
    return "" if count == claims else f", for {count} of {claims} claims"
