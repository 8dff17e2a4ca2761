"""Figures draw the evidence of a shift by round beside its control run."""

from dataclasses import replace

import pytest

from overheard.auditing.threat_results import with_verdicts
from overheard.core.claims import Timeline
from overheard.core.parties import client
from overheard.drawing.figures import ReportFigure
from overheard.findings.audit import Audit
from overheard.findings.finding import ClaimRow
from overheard.questions.shift.pages.timeline_figures import (
    MAX_ATTACKS,
    MAX_TARGETS,
    timeline_figures,
)
from tests.report.shift_audits import SINCE, shift_audit, shift_findings
from tests.runs.audits import HOSTILE


def report_figures(audit: Audit) -> tuple[ReportFigure, ...]:
    return timeline_figures(audit, with_verdicts(audit).arm_results)


def test_draws_the_first_run_of_many_targets_shifted_ones_first() -> None:
    targets = tuple(client(number) for number in (2, 3, 1))
    findings = shift_findings("none", "sharp", 5.0, runs=2, targets=targets)
    (report_figure,) = report_figures(shift_audit(findings))
    assert [panel.heading for panel in report_figure.panels] == [
        f"Client {number}, seed 0" for number in (1, 2, 3)
    ]


def test_draws_at_most_the_maximum_number_of_targets() -> None:
    (bare,) = shift_findings("none", "sharp", 5.0, has_controls=False)
    findings = [replace(bare, targets=(client(number),)) for number in range(20)]
    (report_figure,) = report_figures(shift_audit(findings))
    assert len(report_figure.panels) == MAX_TARGETS


def test_the_table_lists_the_drawn_values() -> None:
    findings = shift_findings("none", "sharp", 5.0)
    (report_figure,) = report_figures(shift_audit(findings))
    planned, threshold, control = report_figure.table.rows
    assert report_figure.table.headers[:5] == (
        "Target",
        "Line",
        "True shift",
        "Alarm",
        "Claimed shift, looking back",
    )
    assert [line[1] for line in report_figure.table.rows] == [
        "planned run", "threshold", "control run",
    ]  # fmt: skip
    assert planned[2] == str(SINCE)
    assert control[2] == "–"
    assert set(threshold[5:]) == {"3.0"}
    timeline = findings[0].claimed.timeline
    assert float(planned[5 + SINCE]) == pytest.approx(timeline.statistic[SINCE], abs=0.06)


@pytest.mark.slow
def test_draws_only_the_best_attacks_in_order() -> None:
    findings = [
        finding
        for number in range(5)
        for finding in shift_findings("none", f"attack {number}", 9.0 * (number == 4), runs=6)
    ]
    best, *others = report_figures(shift_audit(findings))
    assert len(others) == MAX_ATTACKS - 1
    assert best.title.endswith("attack 4")
    assert "the 3 best of 5 attacks" in best.note


def test_draws_a_run_without_a_control_but_no_control_alone() -> None:
    findings = shift_findings("none", "sharp", 5.0, has_controls=False)
    (report_figure,) = report_figures(shift_audit(findings))
    assert [line[1] for line in report_figure.table.rows] == ["planned run", "threshold"]
    both = shift_findings("none", "sharp", 5.0)
    assert (
        report_figures(shift_audit([finding for finding in both if finding.cell.is_control]))
        == ()
    )


def test_draws_an_empty_panel_for_evidence_without_rounds() -> None:
    (bare,) = shift_findings("none", "sharp", 5.0, has_controls=False)
    (report_figure,) = report_figures(
        shift_audit([replace(bare, claimed=ClaimRow(timeline=Timeline()))])
    )
    assert len(report_figure.panels) == 1
    assert len(report_figure.table.headers) == 5


def test_label_shares_have_no_timeline(small: Audit) -> None:
    assert report_figures(small) == ()


def test_escapes_names_in_a_drawing() -> None:
    (report_figure,) = report_figures(shift_audit(shift_findings("none", HOSTILE, 5.0)))
    assert all("<script" not in panel.drawing for panel in report_figure.panels)
