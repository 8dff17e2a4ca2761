"""Class shares are told by the class that is read worst, client by client."""

from dataclasses import replace

from overheard.auditing.exposures import arms
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.findings.finding import Audit, Cell, Refusal
from overheard.questions.label_shares.pages.report import LabelSharesPages
from overheard.questions.label_shares.question import LabelSharesQuestion
from overheard.report.page import page
from tests.worlds.audits import shares_finding

PAGES = LabelSharesPages(LabelSharesQuestion())


def test_the_worst_class_is_told_and_the_misplaced_data_where_it_was_not_scored(
    small: Audit,
) -> None:
    case = arms(small, Seed(0))[0].exposures[0].cases[0]
    assert PAGES.told_row(case).score == "linf"
    bare = replace(case, whole={"l1": case.whole["l1"]})
    assert PAGES.told_row(bare).score == "l1"
    assert PAGES.reading(bare.row, "each client's").well == (
        "reads each client's class shares with Data put in the wrong class 6.0\u00a0%"
    )


def test_the_section_has_a_figure_an_arm_and_a_table_of_intervals(small: Audit) -> None:
    (bare,) = PAGES.sections(small, arms(small, Seed(0)))
    assert [len(block.plates) for block in bare.blocks] == [2]
    bounded = shares_finding("none", client(0), (1.0, 0.0), (0.9, 0.1), reach=0.2)
    audit = replace(small, findings=(bounded,))
    (section,) = PAGES.sections(audit, arms(audit, Seed(0)))
    assert [block.heading for block in section.blocks] == [
        "",
        "How far the stated intervals can be trusted",
    ]


def test_where_nothing_was_inferred_the_section_says_so_and_why(small: Audit) -> None:
    cell = Cell("none", 0, (SERVER,), "decaf", "Decaf()", "label_shares", (0, 1))
    audit = replace(small, findings=(), refusals=(Refusal(cell, client(0), ("updates",)),))
    told = page(audit, arms(audit, Seed(0)))
    assert "No shares of classes were inferred." in told
    assert "Not shown, since not measured: none · The server, about each client" in told
