"""Score tables have only columns and rows with values."""

from overheard.drawing.score_tables import (
    ScoreColumn,
    ScoreTable,
    guess_value,
    score_tables,
)
from overheard.findings.audit import Audit
from overheard.findings.number_format import Measure

ERROR = Measure("Error", "\u00a0points", 100.0)

TABLE = ScoreTable(
    "What is off",
    (
        ScoreColumn("linf", ERROR),
        ScoreColumn("linf", ERROR, "Guessing", guess_value),
        ScoreColumn("nobody", ERROR),
    ),
)


def test_a_row_has_value_interval_and_guess(small: Audit) -> None:
    (table,) = score_tables(small.arm_results, (TABLE,))
    assert table.headers == ("Arm", "Attack", "Error", "Guessing")
    # linf of 0.10 and 0.02; guessing 0.5 and 0.3; the interval is Student's for two clients,
    # cut at 0.
    line = ("none", "decaf", "6.0\u00a0points (0 to 57\u00a0points)", "40\u00a0points")
    assert table.rows[0] == line
    assert table.text_columns == 2
