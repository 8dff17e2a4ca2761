"""Figures of re-identification show the attacks' rates, and a table lists the numbers."""

from overheard.auditing.threat_results import with_verdicts
from overheard.drawing.figures import ReportFigure
from overheard.findings.finding import Finding
from overheard.questions.identity.pages.identity_figures import identity_figures
from tests.report.user_audits import (
    identity_findings,
    user_audit,
)
from tests.runs.audits import HOSTILE


def report_figures(findings: list[Finding]) -> tuple[ReportFigure, ...]:
    return identity_figures(with_verdicts(user_audit(findings, {"none": 0.8})).arm_results)


def test_the_table_lists_the_drawn_values() -> None:
    (report_figure,) = report_figures(identity_findings("none", "ours", 9.0, strangers=()))
    figures = dict(zip(report_figure.table.headers, report_figure.table.rows[0], strict=True))
    assert figures["Attack"] == "ours"
    assert figures["True user in the top 1"] == figures["Average precision, median"] == "100"
    assert figures["TPR at 1 % FPR"] == "100"


def test_escapes_names() -> None:
    (report_figure,) = report_figures(identity_findings("none", f"{HOSTILE}\x1b[31m", 3.0))
    assert "<script" not in report_figure.legend
    assert all("<script" not in panel.drawing for panel in report_figure.panels)
    assert "\x1b" not in report_figure.table.rows[0][0]
