"""What one attack got out of each target by itself."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.core.parties import Party
from overheard.core.scorer import Score
from overheard.findings.exposures import Case


@final
@dataclass(frozen=True, slots=True)
class TargetMean:
    """One target's figure, mean over its runs.

    Args:
        value: of the figure.
        blind: of the best guess that heard nothing; None where there is none.

    """

    value: float
    blind: float | None


def by_target(case: Case, score: str) -> Mapping[Party, TargetMean]:
    """The score of each target that has it, in the order of the findings."""
    held: dict[Party, list[Score]] = defaultdict(list)
    for finding in case.findings:
        for one in finding.scores:
            if one.name == score:
                held[finding.target].append(one)
    return {target: _mean(scores) for target, scores in held.items()}


def _mean(scores: list[Score]) -> TargetMean:
    values = [score.value for score in scores]
    blinds = [score.blind for score in scores if score.blind is not None]
    return TargetMean(sum(values) / len(values), sum(blinds) / len(blinds) if blinds else None)
