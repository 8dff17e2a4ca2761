"""Tables list every score on shifts with its interval."""

from dataclasses import replace

from overheard.auditing.threat_results import with_verdicts
from overheard.drawing.figures import ReportTable
from overheard.findings.audit import Audit
from overheard.findings.finding import Finding
from overheard.questions.shift.pages.report import detection_tables
from tests.report.shift_audits import shift_audit, shift_findings


def tables(audit: Audit) -> dict[str, ReportTable]:
    all_tables = detection_tables(with_verdicts(audit).arm_results)
    return {table.caption.partition(" (")[0]: table for table in all_tables}


def test_an_attack_with_alarms_has_a_row_in_all_tables_and_one_without_in_two() -> None:
    findings = [
        *shift_findings("none", "tracker", 7.0, runs=20),
        *shift_findings("none", "trend", 0.0, runs=20, has_alarm=False),
    ]
    by_title = tables(shift_audit(findings))
    assert {title: [line[1] for line in table.rows] for title, table in by_title.items()} == {
        "Shifts compared with controls": ["tracker", "trend"],
        "Alarms raised by the attacks": ["tracker"],
        "Claimed round and change": ["tracker", "trend"],
        "Claimed shares after the shift, and coverage of the intervals": ["tracker"],
    }
    for table in by_title.values():
        assert all(len(line) == len(table.headers) for line in table.rows)


def test_shows_the_lower_bound_of_the_time_between_alarms_if_there_was_none() -> None:
    # None of 5 controls peaks above 3.02 here: 100 rounds / 3.689 = 27.
    by_title = tables(shift_audit(shift_findings("none", "tracker", 5.0, runs=5)))
    table = by_title["Alarms raised by the attacks"]
    figures = dict(zip(table.headers, table.rows[0], strict=True))
    assert figures["Controls that raised an alarm"].startswith("0\u00a0%")
    assert figures["Mean time between false alarms"] == "27\u00a0rounds or more"


def with_exact_controls(findings: list[Finding]) -> list[Finding]:
    """Add to each control, now a natural one, an exact one with the same evidence."""
    controls = [one for one in findings if one.cell.is_control]
    return [
        *(one for one in findings if not one.cell.is_control),
        *(
            replace(one, cell=replace(one.cell, control=kind))
            for one in controls
            for kind in ("natural", "exact")
        ),
    ]


def test_exact_controls_have_a_table_of_their_own() -> None:
    findings = with_exact_controls(shift_findings("none", "tracker", 9.0, runs=20))
    by_title = tables(shift_audit(findings))
    exact = by_title["Shifts compared with exact controls"]
    figures = dict(zip(exact.headers, exact.rows[0], strict=True))
    alarms = by_title["Alarms raised by the attacks"]
    natural = dict(zip(alarms.headers, alarms.rows[0], strict=True))
    assert figures["Shifts ranked above exact controls"].startswith("100\u00a0of\u00a0100")
    assert (
        figures["Exact controls that raised an alarm"]
        == natural["Controls that raised an alarm"]
    )
