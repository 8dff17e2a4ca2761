"""How people are recognised is drawn, and the numbers stand below."""

import pytest

from overheard.auditing.exposures import arms
from overheard.core.seeds import Seed
from overheard.drawing.pair_plates import MOST_ATTACKS
from overheard.drawing.plates import Plate
from overheard.findings.finding import Finding
from overheard.questions.identity.pages.identity_plates import identity_plates
from tests.report.people import (
    identity_findings,
    people_audit,
)
from tests.worlds.audits import HOSTILE


def plates(findings: list[Finding]) -> tuple[Plate, ...]:
    return identity_plates(arms(people_audit(findings, {"none": 0.8}), Seed(0)))


def test_strangers_are_drawn_only_where_there_are_some() -> None:
    (plate,) = plates(identity_findings("none", "ours", 3.0))
    (known,) = plates(identity_findings("none", "ours", 3.0, strangers=()))
    assert [panel.heading for panel in plate.panels] == [
        "ROC curve of pair matching",
        "Right among the first so many named",
        "User by user: ours",
        "With users it does not know",
    ]
    assert len(known.panels) == 3
    assert known.table.lines[0][-2:] == ("–", "–")


def test_the_table_says_what_the_lines_show() -> None:
    (plate,) = plates(identity_findings("none", "ours", 9.0, strangers=()))
    figures = dict(zip(plate.table.heads, plate.table.lines[0], strict=True))
    assert figures["Attack"] == "ours"
    assert figures["Right among 1"] == figures["Half below"] == "100"
    assert figures["TPR at 1 % FPR"] == "100"


@pytest.mark.slow
def test_only_the_best_attacks_are_drawn_and_the_note_says_so() -> None:
    findings = [
        one
        for number in range(MOST_ATTACKS + 2)
        for one in identity_findings("none", f"attack {number}", 0.5 * number)
    ]
    (plate,) = plates(findings)
    assert {line[0] for line in plate.table.lines} == {
        f"attack {number}" for number in range(2, MOST_ATTACKS + 2)
    }
    assert "The tables list 2 more" in plate.note


def test_names_are_shown_and_escaped() -> None:
    (plate,) = plates(identity_findings("none", f"{HOSTILE}\x1b[31m", 3.0))
    assert plate.legend is not None
    assert "<script" not in plate.legend
    assert all("<script" not in panel.drawing for panel in plate.panels)
    assert "\x1b" not in plate.table.lines[0][0]
