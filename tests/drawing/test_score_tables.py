"""Score tables have only columns and rows with values."""

from dataclasses import replace

from overheard.auditing.exposures import arms
from overheard.core.seeds import Seed
from overheard.drawing.score_tables import (
    ScoreColumn,
    ScoreTable,
    blind_guess,
    score_tables,
)
from overheard.findings.finding import Audit
from overheard.findings.number_format import Measure

ERROR = Measure("Error", "\u00a0points", 100.0)

TABLE = ScoreTable(
    "What is off",
    (
        ScoreColumn("linf", ERROR),
        ScoreColumn("linf", ERROR, "Guessing", blind_guess),
        ScoreColumn("nobody", ERROR),
    ),
)


def test_a_row_has_value_interval_and_guess(small: Audit) -> None:
    (table,) = score_tables(arms(small, Seed(0)), (TABLE,))
    assert table.heads == ("Arm", "Attack", "Error", "Guessing")
    # linf of 0.10 and 0.02; guessing 0.5 and 0.3.
    line = ("none", "decaf", "6.0\u00a0points (2.0 to 10\u00a0points)", "40\u00a0points")
    assert table.lines[0] == line
    assert table.words == 2


def test_an_attack_without_values_has_no_row(small: Audit) -> None:
    bare = tuple(
        replace(one, scores=one.scores[:1]) if one.cell.arm == "noise" else one
        for one in small.findings
    )
    (table,) = score_tables(arms(replace(small, findings=bare), Seed(0)), (TABLE,))
    assert [line[0] for line in table.lines] == ["none"]


def test_a_table_without_rows_is_left_out(small: Audit) -> None:
    nothing = ScoreTable("Nothing", (ScoreColumn("nobody", ERROR),))
    assert score_tables(arms(small, Seed(0)), (nothing,)) == ()
