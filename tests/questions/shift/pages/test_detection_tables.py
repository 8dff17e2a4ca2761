"""Every figure on shifts stands in a table with its interval."""

from overheard.auditing.exposures import arms
from overheard.core.seeds import Seed
from overheard.drawing.plates import Table
from overheard.findings.finding import Audit
from overheard.questions.shift.pages.detection_tables import detection_tables
from tests.report.shifts import shift_audit, shift_findings


def tables(audit: Audit) -> dict[str, Table]:
    held = detection_tables(arms(audit, Seed(0)))
    return {table.caption.partition(" (")[0]: table for table in held}


def test_an_attack_with_alarms_has_a_line_in_all_and_one_without_in_two() -> None:
    findings = [
        *shift_findings("none", "tracker", 7.0, runs=20),
        *shift_findings("none", "trend", 0.0, runs=20, has_alarm=False),
    ]
    held = tables(shift_audit(findings))
    assert {title: [line[1] for line in table.lines] for title, table in held.items()} == {
        "Shifts told from controls": ["tracker", "trend"],
        "Alarms that the attacks raise themselves": ["tracker"],
        "What is said of the round and the change": ["tracker", "trend"],
        "What is said of the new shares, and how far intervals can be trusted": ["tracker"],
    }
    for table in held.values():
        assert all(len(line) == len(table.heads) for line in table.lines)


def test_figures_stand_with_their_intervals_and_the_guess() -> None:
    table = tables(shift_audit(shift_findings("none", "tracker", 9.0, runs=20)))
    (line,) = table["Shifts told from controls"].lines
    figures = dict(zip(table["Shifts told from controls"].heads, line, strict=True))
    assert figures["Shifts told from controls"].startswith("100\u00a0of\u00a0100 (")
    assert figures["Guessing"] == "50\u00a0of\u00a0100"
    # 20 of 20: 0.025^(1/20) = 83 %
    assert figures["Found at 5\u00a0% false alarms"] == "100\u00a0% (83 to 100)"
    assert figures["Found at 1\u00a0% false alarms"] == "–"


def test_a_time_without_any_false_alarm_is_told_by_its_low_end() -> None:
    # None of 5 controls peaks above 3.02 here: 100 rounds / 3.689 = 27.
    held = tables(shift_audit(shift_findings("none", "tracker", 5.0, runs=5)))
    table = held["Alarms that the attacks raise themselves"]
    figures = dict(zip(table.heads, table.lines[0], strict=True))
    assert figures["Controls that raised the alarm"].startswith("0\u00a0%")
    assert figures["Between false alarms"] == "27\u00a0rounds or more"


def test_without_controls_there_is_no_table() -> None:
    findings = shift_findings("none", "tracker", 9.0, runs=3, has_controls=False)
    assert tables(shift_audit(findings)) == {}
