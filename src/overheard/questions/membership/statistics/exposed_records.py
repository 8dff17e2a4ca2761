"""The members that an attack tells from non-members, with a bound on false discoveries."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class ExposedRecord:
    """A member whose score is above those of non-members.

    Args:
        record: its number among the candidate records, from 0.
        p_value: one plus the number of non-members that score as high, divided by one plus
            the number of non-members.

    """

    record: int
    p_value: float


def find_exposed_records(
    scores: Sequence[float], kinds: Sequence[float], rate: float
) -> tuple[ExposedRecord, ...]:
    """Return the members of a target with scores above those of non-members, highest first.

    The null hypothesis of a member is that its score is one of a non-member: the attack sees
    nothing of it. Its p-value is conformal (Vovk et al. 2005). The procedure of Benjamini and
    Hochberg (1995) selects members such that, on average, at most the share `rate` of the list
    are ones of which the attack sees nothing. It holds for p-values with the same non-members
    (Bates et al. 2023, Testing for Outliers with Conformal p-values, Theorem 2).

    Members and non-members must be alike but for the training, as canaries are. Where clients
    differ in their labels, scores that show a label alone are above those of non-members too.

    >>> find_exposed_records([3, 9, 1, 2, 5, 8], [1, 1, -1, -1, -1, 0], rate=0.5)
    (ExposedRecord(record=1, p_value=0.25), ExposedRecord(record=0, p_value=0.5))

    Args:
        scores: the score of each candidate record.
        kinds: 1 = member of the target, -1 = non-member, 0 = neither.
        rate: the largest expected share of false discoveries.

    """
    outside = sorted(score for score, kind in zip(scores, kinds, strict=True) if kind < 0)
    members = sorted(
        (-score, record)
        for record, (score, kind) in enumerate(zip(scores, kinds, strict=True))
        if kind > 0
    )
    count = len(outside)
    tested = [
        ExposedRecord(record, (1 + count - bisect_left(outside, -score)) / (1 + count))
        for score, record in members
    ]
    passed = [
        number
        for number, one in enumerate(tested, 1)
        if one.p_value <= rate * number / len(tested)
    ]
    return tuple(tested[: max(passed, default=0)])
