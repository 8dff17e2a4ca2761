"""Phrases about results that several questions use."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.core.parties import Party
from overheard.core.scorer import Score
from overheard.findings.names import name_targets
from overheard.findings.number_format import NO_NUMBER, SPACE, Measure
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import AttackResult, ThreatResult


@final
@dataclass(frozen=True, slots=True)
class TargetMean:
    """One target's score, mean over its runs.

    Args:
        value: the mean score.
        best_uninformed: mean score of the best uninformed guess; None if there is none.

    """

    value: float
    best_uninformed: float | None


def means_by_target(result: AttackResult, score: str) -> Mapping[Party, TargetMean]:
    """Return the mean of a score for each target that has it, in the order of the findings."""
    scores_by_target: dict[Party, list[Score]] = defaultdict(list)
    for finding in result.findings:
        for score_of_finding in finding.scores:
            if score_of_finding.name == score:
                scores_by_target[finding.target].append(score_of_finding)
    return {target: _mean(scores) for target, scores in scores_by_target.items()}


def _mean(scores: list[Score]) -> TargetMean:
    values = [score.value for score in scores]
    guesses = [score.best_uninformed for score in scores if score.best_uninformed is not None]
    return TargetMean(
        sum(values) / len(values), sum(guesses) / len(guesses) if guesses else None
    )


@final
@dataclass(frozen=True, slots=True)
class Statement:
    """The phrases of a headline sentence.

    Args:
        topic: the inferred quantity, such as "each client's label shares".
        success: predicate for a leak, with the result: "infers ..., correct in 70 %".
        failure: the result of the best attack if there is no leak: "correct in 20 %".

    """

    topic: str
    success: str
    failure: str


def bracketed_interval(row: ScoreRow, told: Measure, addition: str = "") -> str:
    """Return a row's 95 % interval and further text in brackets; "" if there is neither."""
    span = told.format_interval(row.value)
    interval = "" if span == NO_NUMBER else f"95{SPACE}% interval {span}"
    words = f"{interval}{addition}".removeprefix("; ")
    return f" ({words})" if words else ""


def best_target_sentences(
    threat_result: ThreatResult, row: ScoreRow, told: Measure
) -> tuple[str, ...]:
    """Name the target on which the best attack does best; nothing for a single target.

    Args:
        threat_result: a threat with results.
        row: the result of the best attack.
        told: how its score is written.

    """
    results = means_by_target(threat_result.attack_results[0], row.score)
    if len(results) < 2:
        return ()
    sign = 1 if row.better == "lower" else -1
    # The first of equal results: sums in another order differ in the last digits.
    best = min(results, key=lambda target: round(sign * results[target].value, 9))
    value, uninformed = told.format(results[best].value), results[best].best_uninformed
    guess = "" if uninformed is None else f" (guessing: {told.format(uninformed)})"
    chance = (
        ""
        if threat_result.verdict == "leaks"
        else f"; among {len(results)} clients, some score well by chance"
    )
    name = name_targets((best,), threat_result.observers)
    return (f"Best result: {name}, {value}{guess}{chance}.",)
