"""The annex states who reads what, what they know, and which defenses are in force."""

import pytest

from tests.gate.documents import run
from tests.report.evidence.annexes import annex_of, section_of


def test_states_the_observers_and_their_knowledge() -> None:
    text = section_of(annex_of(), "Threat model")
    row = "The server and client 1 together | the other clients | labelled examples"
    assert row in text
    assert "a new word | new in each round" in text
    assert "deviate from the protocol were not tested" in text
    assert "attacks look stronger" not in text
    doubtful = section_of(annex_of(is_auxiliary_separate=False), "Threat model")
    assert "attacks look stronger than they are" in doubtful


@pytest.mark.parametrize(
    "plan", ["", "not TOML", "threats = 3", "threats = [1]", "[[threats]]\nknows = 7"]
)
def test_a_text_that_is_no_plan_does_no_harm(plan: str) -> None:
    assert "Threat model" in section_of(annex_of(plan=plan), "Threat model")


def test_states_what_travels_in_clear() -> None:
    text = section_of(annex_of(), "Threat model")
    assert "Numbers of examples | 50 examples | bare" in text
    nothing = section_of(annex_of(arms=[run(in_clear=[]), run("noisy")]), "Threat model")
    assert "Nothing is sent besides weights." in nothing


def test_controls_are_no_arms_of_their_own() -> None:
    arms = [run(is_control=True, seed=7), run(), run("noisy")]
    text = section_of(annex_of(arms=arms), "Threat model")
    assert text.count("bare | none") == 1
