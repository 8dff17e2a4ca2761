"""The pages on label shares report how much of the data is assigned to the wrong class."""

from dataclasses import replace

from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import SERVER, client
from overheard.findings.audit import Audit
from overheard.findings.finding import Cell, Refusal
from overheard.report.page import render_page


def test_a_section_without_shares_says_why(small: Audit) -> None:
    cell = Cell("none", 0, (SERVER,), "decaf", "Decaf()", "label_shares", (0, 1))
    audit = replace(small, findings=(), refusals=(Refusal(cell, client(0), ("updates",)),))
    html = render_page(with_verdicts(audit))
    assert "No label shares were inferred." in html
    assert "Not shown, since not measured: none · The server, about each client" in html
