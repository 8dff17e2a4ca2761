"""Two scores differ only if their intervals do not overlap."""

import pytest

from overheard.core.scorer import Better
from overheard.findings.score_row import ScoreRow
from overheard.report.defense_effects import compare_rows
from overheard.statistics.estimate import Estimate


def row(low: float | None, high: float | None, better: Better) -> ScoreRow:
    value = Estimate(0.5, low, high)
    return ScoreRow("none", (), "a", "b", (0,), "c", better, value, {}, {}, None, None, 1, 1)


@pytest.mark.parametrize(
    ("after", "better", "expected"),
    [
        ((0.5, 0.9), "lower", "reads less"),
        ((0.5, 0.9), "higher", "reads more"),
        ((0.0, 0.1), "lower", "reads more"),
        ((0.0, 0.1), "higher", "reads less"),
        ((0.3, 0.9), "lower", "no clear difference"),
        ((None, None), "lower", "too few"),
    ],
)
def test_only_disjoint_intervals_show_a_difference(
    after: tuple[float | None, float | None], better: Better, expected: str
) -> None:
    assert compare_rows(row(0.2, 0.4, better), row(*after, better)) == expected
