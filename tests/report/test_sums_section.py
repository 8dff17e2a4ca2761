"""The page has a table of what sums reveal where a run has sums."""

from overheard.findings.finding import ArmRun
from overheard.participation.sums_reading import SumsReading
from overheard.report.sums_section import sums_blocks

READ = SumsReading(
    20, 30, 10, 10, 20, 20, 0.8, 0.85, (0.1, 0.8), {30: 0.55}, 1, 2, ("client/0",), 0, 20, True
)


def test_each_run_with_sums_has_a_row_and_others_have_none() -> None:
    bare = ArmRun("bare", 0, (), {}, 0, 8)
    masked = ArmRun("<masked>", 1, (), {}, 0, 8, sums=READ)
    assert sums_blocks((bare,)) == ()
    (block,) = sums_blocks((bare, masked))
    (row,) = block.tables[0].rows
    assert row[1:] == ("1", "30", "10", "20", "0.80", "0.85", "0.55", "1 to 2", "20")
