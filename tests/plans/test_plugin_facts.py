"""What is told of a plugin is what its class states."""

import pytest

from overheard.data.splits.by_user import ByUser
from overheard.data.splits.iid import Iid
from overheard.defenses.dp_fedavg import DpFedavg
from overheard.defenses.local_dp import LocalDp
from overheard.defenses.secure_aggregation import SecureAggregation
from overheard.plans.plugin_facts import plugin_facts
from overheard.plans.registries import ATTACKS, DEFENSES
from overheard.questions.label_shares.attacks.amortised import Amortised
from overheard.questions.label_shares.attacks.decaf import Decaf
from overheard.questions.membership.attacks.lira import Lira


@pytest.mark.parametrize("plugin", ATTACKS.plugins().values(), ids=lambda one: one.name)
def test_every_attack_tells_its_question_needs_training_and_cost(plugin):
    facts = plugin_facts(plugin)
    assert list(facts) == ["Question", "Needs", "Trained on", "Adapts to defenses", "Cost"]
    assert all(facts.values())
    for need in plugin.needs:
        assert need.description in facts["Needs"]


def test_an_attack_that_simulates_clients_adapts_and_costs_their_training():
    facts = plugin_facts(Amortised)
    assert facts["Adapts to defenses"].startswith("yes")
    assert "`virtual.clients`" in facts["Cost"]
    assert "candidate records" in plugin_facts(Lira)["Trained on"]


def test_an_attack_in_closed_form_adapts_to_known_training_only():
    facts = plugin_facts(Decaf)
    assert facts["Adapts to defenses"] == (
        "to known defenses that change a client's loss, model or steps"
    )
    assert facts["Cost"] == "trains no clients"


@pytest.mark.parametrize("plugin", DEFENSES.plugins().values(), ids=lambda one: one.name)
def test_every_defense_tells_what_it_changes_and_whom_it_trusts(plugin):
    facts = plugin_facts(plugin)
    assert all(facts.values())
    assert facts["Could be skipped by"] == plugin.switched_off_by


def test_defenses_differ_in_what_they_change_and_in_their_noise():
    assert plugin_facts(LocalDp)["Changes"] == "updates"
    assert plugin_facts(LocalDp)["Noise with an epsilon"] == "yes"
    assert "the aggregate" in plugin_facts(DpFedavg)["Changes"]
    assert plugin_facts(SecureAggregation)["Changes"] == "who can read an update"


def test_a_split_tells_that_it_needs_users():
    assert "one user" in plugin_facts(ByUser)["Clients"]
    assert plugin_facts(Iid) == {}
