"""DataFrame columns keep their dtypes, whatever their values."""

from overheard.core.scorer import Score
from overheard.findings.frame import COLUMNS, score_columns, typed_frame


def test_a_frame_without_rows_has_its_columns_and_dtypes():
    frame = typed_frame([])
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == dict(COLUMNS)
    assert len(frame) == 0


def test_absent_values_are_missing():
    frame = typed_frame([{"value": 0.5}, {"since": 3}], ("value", "since", "score", "low"))
    assert frame["value"].tolist()[0] == 0.5
    assert frame.isna().sum().tolist() == [1, 1, 2, 2]
    assert frame["since"][1] == 3


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
