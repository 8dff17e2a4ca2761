"""What is told of a plugin is what its class states."""

import pytest

from overheard.data.splits.by_user import ByUser
from overheard.data.splits.iid import Iid
from overheard.plans.plugin_facts import plugin_facts
from overheard.plans.registries import ATTACKS, DEFENSES


@pytest.mark.parametrize("plugin", ATTACKS.plugins().values(), ids=lambda one: one.name)
def test_every_attack_tells_its_question_needs_training_and_cost(plugin):
    facts = plugin_facts(plugin)
    assert list(facts) == ["Question", "Needs", "Trained on", "Adapts to defenses", "Cost"]
    assert all(facts.values())
    for need in plugin.needs:
        assert need.description in facts["Needs"]


@pytest.mark.parametrize("plugin", DEFENSES.plugins().values(), ids=lambda one: one.name)
def test_every_defense_tells_what_it_changes_and_whom_it_trusts(plugin):
    facts = plugin_facts(plugin)
    assert all(facts.values())
    assert facts["Could be skipped by"] == plugin.switched_off_by


def test_a_split_tells_that_it_needs_users():
    assert "one user" in plugin_facts(ByUser)["Clients"]
    assert plugin_facts(Iid) == {}
