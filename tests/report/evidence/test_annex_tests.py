"""The annex states which tests were made, not checked, refused, not asked and never made."""

from overheard.plans.registries import questions
from overheard.report.evidence.annex_section import question_words
from tests.gate.documents import verdict_row
from tests.report.evidence.annexes import annex_of, section_of


def test_lists_tests_that_were_made_and_those_that_were_refused() -> None:
    text = section_of(annex_of(), "Tests")
    assert "lira; strong; early | bare | 4 | 2" in text
    assert "lira; other | a model | noisy" in text
    assert "This does not show protection" in text


def test_names_every_question_that_was_not_asked() -> None:
    text = section_of(annex_of(), "Tests")
    (line,) = [one for one in text.splitlines() if one.startswith("Questions that")]
    for name in questions():
        assert (question_words(name) in line) == (name != "membership")
    assert "Observers that were not asked about: a client that takes part; parties" in text


PLAN = """
[[threats]]
observers = ["server"]
attacks = ["lira", { kind = "loss_membership", x = 1 }, "decaf", "one of a plugin"]

[[threats]]
observers = ["client/0"]
attacks = ["gradient_membership"]
"""


def test_names_the_attacks_whose_claims_could_not_be_checked() -> None:
    verdicts = [verdict_row("unchecked", None, gain=None, attack="", smallest_p_value=None)]
    text = section_of(annex_of(verdicts=verdicts, summary=[], plan=PLAN), "Tests")
    assert "No attack ran whose claims could be checked." in text
    assert "Attacks that ran" not in text
    # `decaf` answers another question, and the other threat has other observers.
    assert " | lira; loss_membership; one of a plugin | bare" in text
    assert "Claims without a check" not in section_of(annex_of(), "Tests")
