"""Figures of re-identification show the attacks' rates, and a table lists the numbers."""

import pytest

from overheard.auditing.threat_results import with_verdicts
from overheard.drawing.figures import ReportFigure
from overheard.drawing.pair_figures import MAX_ATTACKS
from overheard.findings.finding import Finding
from overheard.questions.identity.pages.identity_figures import identity_figures
from tests.report.user_audits import (
    identity_findings,
    user_audit,
)
from tests.runs.audits import HOSTILE


def report_figures(findings: list[Finding]) -> tuple[ReportFigure, ...]:
    return identity_figures(with_verdicts(user_audit(findings, {"none": 0.8})).arm_results)


def test_draws_the_panel_for_unknown_users_only_if_there_are_some() -> None:
    (report_figure,) = report_figures(identity_findings("none", "ours", 3.0))
    (known,) = report_figures(identity_findings("none", "ours", 3.0, strangers=()))
    assert [panel.heading for panel in report_figure.panels] == [
        "ROC curve of pair matching",
        "True user among the first guesses",
        "Average precision by user: ours",
        "With unknown users",
    ]
    assert len(known.panels) == 3
    assert known.table.rows[0][-2:] == ("–", "–")


def test_the_table_lists_the_drawn_values() -> None:
    (report_figure,) = report_figures(identity_findings("none", "ours", 9.0, strangers=()))
    figures = dict(zip(report_figure.table.headers, report_figure.table.rows[0], strict=True))
    assert figures["Attack"] == "ours"
    assert figures["True user in the top 1"] == figures["Average precision, median"] == "100"
    assert figures["TPR at 1 % FPR"] == "100"


@pytest.mark.slow
def test_draws_only_the_best_attacks_and_says_so_in_the_note() -> None:
    findings = [
        finding
        for number in range(MAX_ATTACKS + 2)
        for finding in identity_findings("none", f"attack {number}", 0.5 * number)
    ]
    (report_figure,) = report_figures(findings)
    assert {line[0] for line in report_figure.table.rows} == {
        f"attack {number}" for number in range(2, MAX_ATTACKS + 2)
    }
    assert "The tables list 2 more" in report_figure.note


def test_escapes_names() -> None:
    (report_figure,) = report_figures(identity_findings("none", f"{HOSTILE}\x1b[31m", 3.0))
    assert report_figure.legend is not None
    assert "<script" not in report_figure.legend
    assert all("<script" not in panel.drawing for panel in report_figure.panels)
    assert "\x1b" not in report_figure.table.rows[0][0]
