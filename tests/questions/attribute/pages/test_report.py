"""What a person is like is told beside chance and the control."""

from overheard.auditing.exposures import arms
from overheard.core.seeds import Seed
from overheard.findings.exposures import Arm
from overheard.questions.attribute.pages.report import attribute_tables
from overheard.report.words import exposure_words
from tests.report.people import attribute_findings, people_audit


def told(strength: float) -> tuple[Arm, ...]:
    findings = attribute_findings("none", "age", strength)
    return arms(people_audit(findings, {"none": 0.8}), Seed(0))


def test_attributes_are_spoken_of_in_their_own_words() -> None:
    (arm,) = told(3.0)
    words = " ".join(exposure_words(arm.exposures[0]))
    assert "tells what the person behind a target is like, right in" in words
    assert "permuted among all clients, the same score is" in words


def test_attributes_have_one_table_with_guess_and_control() -> None:
    (table,) = attribute_tables(told(2.0))
    assert table.caption.startswith("What a person is like")
    assert table.heads[2:5] == ("Values told right", "Guessing", "In the control")
