"""Scores are displayed as their question defines."""

from dataclasses import dataclass

import pytest

from overheard.core.defense import Defense
from overheard.core.messages import Update
from overheard.plans.registries import DEFENSES, questions, score_measure


def test_l1_is_displayed_as_total_variation_in_percent() -> None:
    # l1 0.16 -> half of it, 0.08, in percent.
    assert score_measure("label_shares", "l1").format(0.16) == "8.0\u00a0%"


@pytest.mark.parametrize("name", questions())
def test_every_question_lists_its_headline(name: str) -> None:
    question = questions()[name]
    assert question.scorer.headline in question.measures


class Idle(Defense):
    """A defense that overrides nothing; its hook is misspelt."""

    name = "idle"
    source = "a test"
    enforced_at = "client"
    switched_off_by = "nobody"

    def on_updates(self, update: Update) -> Update:
        return update


def test_a_defense_that_overrides_no_method_is_left_out() -> None:
    with pytest.raises(TypeError, match="Idle does nothing: override one of on_data"):
        DEFENSES.check(dataclass(frozen=True)(Idle))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("enforced_at", None, "has no enforced_at"),
        ("enforced_at", "home", "enforced_at is 'home': choose one of client, server"),
        ("switched_off_by", None, "has no switched_off_by"),
    ],
)
def test_a_defense_that_does_not_say_where_it_acts_is_left_out(
    name: str, value: str | None, message: str
) -> None:
    plugin = dataclass(frozen=True)(type("Loud", (Idle,), {"on_update": print, name: value}))
    with pytest.raises(TypeError, match=message):
        DEFENSES.check(plugin)
