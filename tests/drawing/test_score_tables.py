"""Score tables have only columns and rows with values."""

from dataclasses import replace

from overheard.auditing.threat_results import with_verdicts
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


def test_an_attack_without_values_has_no_row(small: Audit) -> None:
    bare = tuple(
        replace(one, scores=one.scores[:1]) if one.cell.arm == "noise" else one
        for one in small.findings
    )
    (table,) = score_tables(with_verdicts(replace(small, findings=bare)).arm_results, (TABLE,))
    assert [line[0] for line in table.rows] == ["none"]


def test_a_table_without_rows_is_left_out(small: Audit) -> None:
    nothing = ScoreTable("Nothing", (ScoreColumn("nobody", ERROR),))
    assert score_tables(small.arm_results, (nothing,)) == ()
