"""The comparison contains all arms, including unmeasured ones."""

from dataclasses import replace
from html import escape

from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import SERVER, client
from overheard.findings.audit import Audit
from overheard.findings.finding import Cell, Refusal
from overheard.report.arm_figures import arm_figures


def test_a_row_has_result_guess_and_gain(small: Audit) -> None:
    (report_figure,) = arm_figures(small.arm_results)
    cells = [cell.replace("\u00a0", " ") for cell in report_figure.table.rows[1]]
    # With noise: the guess itself, 50 % and 30 %, mean 40 %; told the support: 0 and 30 %.
    # The interval is Student's for two clients: 12.7 standard errors of 10
    # points, cut at 0 and 100 %.
    assert cells == [
        "noise", "decaf", "40 %", "0 to 100 %", "40 %", "15 %", "0 %", "0 to 0 %",
    ]  # fmt: skip


def test_an_unmeasured_arm_has_a_row(small: Audit) -> None:
    cell = Cell("noise", 0, (SERVER,), "decaf", "Decaf()", "label_shares", (0, 1))
    refused = replace(
        small, findings=small.findings[:2], refusals=(Refusal(cell, client(0), ("updates",)),)
    )
    (report_figure,) = arm_figures(with_verdicts(refused).arm_results)
    assert report_figure.table.rows[1][:3] == ("noise", "not measured", "–")
    assert "noise: not measured" in report_figure.panels[0].drawing


def test_long_names_are_drawn_in_full(small: Audit) -> None:
    name = "reidentify_mlp(updates='shadow', layer='last_bias')"
    findings = tuple(
        replace(one, cell=replace(one.cell, attack=name)) for one in small.findings
    )
    (report_figure,) = arm_figures(with_verdicts(replace(small, findings=findings)).arm_results)
    assert escape(name, quote=False) in report_figure.panels[0].drawing
