"""The pages on label shares report how much of the data is assigned to the wrong class."""

from dataclasses import replace

from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import SERVER, client
from overheard.findings.audit import Audit
from overheard.findings.finding import Cell, Refusal
from overheard.questions.label_shares.pages.report import LabelSharesPages
from overheard.questions.label_shares.question import LabelSharesQuestion
from overheard.report.page import render_page
from tests.runs.audits import shares_finding

PAGES = LabelSharesPages(LabelSharesQuestion())


def test_the_headline_is_the_score_that_is_judged(small: Audit) -> None:
    # l1 / 2: 0.10 and 0.02, mean 6.0 %.
    row = small.arm_results[0].threat_results[0].attack_results[0].headline_row
    assert PAGES.headline_statement(row, "each client's").success == (
        "infers each client's label shares, and assigns 6.0\u00a0% of the data to the wrong "
        "class"
    )


def test_the_section_has_a_figure_for_each_arm_and_a_table_of_intervals(small: Audit) -> None:
    (bare,) = PAGES.sections(small, small.arm_results)
    assert [len(block.figures) for block in bare.blocks] == [2]
    bounded = shares_finding("none", client(0), (1.0, 0.0), (0.9, 0.1), reach=0.2)
    audit = replace(small, findings=(bounded,))
    (section,) = PAGES.sections(audit, with_verdicts(audit).arm_results)
    assert [block.heading for block in section.blocks] == [
        "",
        "Reliability of the stated intervals",
    ]


def test_a_section_without_shares_says_why(small: Audit) -> None:
    cell = Cell("none", 0, (SERVER,), "decaf", "Decaf()", "label_shares", (0, 1))
    audit = replace(small, findings=(), refusals=(Refusal(cell, client(0), ("updates",)),))
    html = render_page(with_verdicts(audit))
    assert "No label shares were inferred." in html
    assert "Not shown, since not measured: none · The server, about each client" in html
