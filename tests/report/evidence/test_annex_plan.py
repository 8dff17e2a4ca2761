"""The threats of a plan are read from its text, whatever the text is."""

import pytest

from overheard.report.evidence.annex_plan import PlannedThreat, read_threats


def test_reads_what_a_plan_says_of_a_threat() -> None:
    text = """
    [[threats]]
    observers = ["server"]
    about = "cohort"
    knows = ["auxiliary"]
    pseudonyms = "round"
    attacks = ["decaf", { kind = "amortised", steps = 9 }]
    """
    (threat,) = read_threats(text)
    known, attacks = ("labelled examples of the same task",), ("decaf", "amortised")
    assert threat == PlannedThreat(("server",), "cohort", known, attacks, has_new_names=True)


@pytest.mark.parametrize(
    "text", ["", "not TOML", "threats = 3", "threats = [1]", "[" * 5000, "threats = {a = 1}"]
)
def test_a_text_that_is_no_plan_has_no_threats(text: str) -> None:
    assert list(read_threats(text)) == []


def test_values_of_other_types_are_left_out() -> None:
    text = "[[threats]]\nobservers = [1, 'server']\nattacks = [{ kind = 3 }, 'a', [1]]"
    (threat,) = read_threats(text)
    assert (threat.observers, threat.attacks) == (("server",), ("a",))
