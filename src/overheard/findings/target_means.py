"""Mean score of one attack for each target."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.core.parties import Party
from overheard.core.scorer import Score
from overheard.findings.threat_results import AttackResult


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
