"""DataFrame columns keep their dtypes, whatever their values."""

from overheard.core.scorer import Score
from overheard.findings.frame import COLUMNS, score_columns


def test_a_score_fills_its_columns():
    cells = score_columns(
        Score("l1", 0.5, "lower", {"uniform": 0.75, "prior": 0.6}, {"told": 0.2})
    )
    assert cells == {
        "score": "l1",
        "better": "lower",
        "value": 0.5,
        "blind": 0.6,
        "gain": 0.6 - 0.5,
        "blind guesses": {"uniform": 0.75, "prior": 0.6},
        "told guesses": {"told": 0.2},
    }
    assert cells.keys() < COLUMNS.keys()
    assert score_columns(None) == {}
