"""Links are told, tabled and drawn by pairs alone."""

from overheard.auditing.exposures import arms
from overheard.core.seeds import Seed
from overheard.findings.exposures import Arm
from overheard.questions.same_sender.pages.report import link_plates, link_tables
from overheard.report.words import exposure_words
from tests.report.people import people_audit, sender_findings


def told(strength: float) -> tuple[Arm, ...]:
    return arms(people_audit(sender_findings("none", "link", strength), {"none": 0.8}), Seed(0))


def test_links_are_spoken_of_in_their_own_words() -> None:
    (arm,) = told(3.0)
    words = " ".join(exposure_words(arm.exposures[0]))
    assert "tells which targets are of one sender, with an average precision of" in words
    assert "The equal error rate of its pair matching is" in words
    assert "There was no permutation control" in words
    assert "the interval covers users, not runs" in words


def test_links_have_one_table_with_the_precision_of_a_target() -> None:
    (table,) = link_tables(told(2.0))
    assert table.caption.startswith("Pair matching")
    assert table.heads[2:4] == ("Average precision a target", "Random order")


def test_links_have_curves_of_pairs_alone() -> None:
    (plate,) = link_plates(told(3.0))
    assert [panel.heading for panel in plate.panels] == ["ROC curve of pair matching"]
    assert "histogram" not in plate.note
