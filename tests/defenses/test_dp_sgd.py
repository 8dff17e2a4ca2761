"""DP-SGD as a defense: its epsilon, and what attacks find with more noise."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from overheard.auditing.run_records import planned_defenses
from overheard.core.accounting.accountant import account_mechanism
from overheard.core.defense import LocalTraining, RunParameters
from overheard.core.mechanism import REPEATED_EXAMPLES
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.defenses.class_balanced import ClassBalanced
from overheard.defenses.dp_sgd import DpSgd
from overheard.defenses.local_dp import LocalDp
from overheard.federation.run import record_defense
from overheard.learning.example_gradients import example_gradients, flatten_weights
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask
from overheard.plans.plan import ArmPlan
from overheard.simulation.simulation import run_simulation
from overheard.simulation.update_norms import UpdateNorms
from tests.auditing.plans import TINY
from tests.learning.cases import MLP, TABLE, pool_of, start_of
from tests.simulation.small_run import RECIPE, build, knowledge, server_view

RUN = RunParameters(rounds=20, participation=1.0, epochs=3)


@pytest.mark.parametrize(("noise", "batches"), [(1.0, 50), (4.0, 4)])
def test_epsilon_of_poisson_batches_is_that_of_dp_accounting(noise: float, batches: int):
    distribution = pytest.importorskip(
        "dp_accounting.pld.privacy_loss_distribution"
    ).from_gaussian_mechanism(
        noise, sampling_prob=1 / batches, value_discretization_interval=1e-3
    )
    expected = distribution.self_compose(20 * 3 * batches).get_epsilon_for_delta(1e-5)
    mechanism = DpSgd(noise_multiplier=noise, batches=batches).mechanism().in_round(3)
    assert (mechanism.unit, mechanism.steps) == ("record", 3 * batches)
    found = account_mechanism(mechanism, RUN).recomputed
    assert found is not None
    assert found.pld == pytest.approx(expected, rel=0.01)


def test_shuffled_batches_count_as_one_gaussian_an_epoch():
    accounting = pytest.importorskip("dp_accounting")
    accountant = pytest.importorskip("dp_accounting.pld").PLDAccountant()
    accountant.compose(accounting.GaussianDpEvent(4.0), 20 * 3)
    defense = DpSgd(noise_multiplier=4.0, batches=7, sampling="shuffled")
    found = account_mechanism(defense.mechanism().in_round(3), RUN).recomputed
    assert found is not None
    assert found.pld == pytest.approx(accountant.get_epsilon(1e-5), rel=0.01)
    promise = defense.promise(RUN)
    # Two batches of equal size may differ if another example moves into the place.
    place = "(its place in the batches stays empty)"
    removed = f"epsilon 9.61 if one example of a user (a client) is added or removed {place},"
    assert removed in promise
    assert place not in DpSgd().promise(RUN)
    assert "Several examples, such as parts of one text, are not covered together" in promise
    assert "shuffled, so not counted: one draw an epoch" in promise


def test_a_manifest_has_the_steps_of_a_round():
    mechanism = record_defense(DpSgd(batches=4), epochs=3).mechanism
    assert mechanism is not None
    assert (mechanism.steps, mechanism.record_rate) == (12, 0.25)
    # A defense without sampled records draws its noise once a round.
    other = record_defense(LocalDp(), epochs=3).mechanism
    assert other is not None
    assert other.steps == 1


def test_nothing_is_promised_beside_a_defense_that_repeats_examples():
    assert ClassBalanced.repeats_examples
    arm = ArmPlan(name="both", defenses=(DpSgd(), ClassBalanced()))
    stated, _ = planned_defenses(TINY, arm)
    assert stated.promise.startswith(f"epsilon not computed ({REPEATED_EXAMPLES})")
    assert stated.accounted is not None
    assert stated.accounted.recomputed is None
    run = replace(RUN, repeats_examples=True)
    assert "epsilon not computed" not in LocalDp().promise(run)
    recorded = record_defense(DpSgd(), epochs=1, repeats_examples=True).mechanism
    assert recorded is not None
    assert account_mechanism(recorded, RUN).recomputed is None


def test_without_noise_nothing_is_promised():
    defense = DpSgd(noise_multiplier=0.0)
    assert "no formal promise" in defense.promise(RUN)
    assert defense.mechanism().flaw == "it adds no noise"


def test_updates_tell_less_of_members_with_more_noise():
    """The attack: an update points against the gradients of the examples trained on."""
    recipe = Recipe(rate=0.1, epochs=2, batch=5)
    pool, start = pool_of(TABLE, torch.float64, examples=40), start_of(MLP)
    gradients = example_gradients(MLP, start, pool, recipe)
    is_member = torch.arange(40) < 20

    def advantage(training: Recipe) -> float:
        """The chance that a member ranks above another example, over 20 seeds."""
        found = []
        for seed in range(20):
            client = ClientTask("client/0", torch.arange(20))
            (one,) = train_cohort(
                MLP, start, pool, [client], training, seed=Seed(seed), round=0
            )
            score = -(gradients @ flatten_weights(one.delta))
            found.append(pairs_in_order(score[is_member], score[~is_member]))
        return sum(found) / len(found)

    def defended(noise: float) -> Recipe:
        defense = DpSgd(noise_multiplier=noise, batches=4)
        return defense.on_training(LocalTraining(MLP, recipe)).recipe

    undefended, clipped, little, much = map(
        advantage, (recipe, defended(0.0), defended(2.0), defended(16.0))
    )
    assert min(undefended, clipped) > 0.7
    assert 0.55 < little < clipped - 0.05
    assert much == pytest.approx(0.5, abs=0.06)


def test_an_attacker_who_knows_it_trains_virtual_clients_with_its_noise():
    def mean_norm(recipe: Recipe) -> float:
        attacker = replace(knowledge(virtual=12), recipe=recipe)
        simulation = run_simulation(server_view(1), attacker, (0,), (UpdateNorms(),))
        return float(simulation.readings[UpdateNorms()].mean())

    plain = LocalTraining(build, RECIPE)
    noisy = DpSgd(noise_multiplier=16.0, batches=4).on_training(plain)
    assert mean_norm(noisy.recipe) > 2 * mean_norm(plain.recipe)


def pairs_in_order(above: Tensor, below: Tensor) -> float:
    """The share of pairs in which the first number is larger."""
    return float((above[:, None] > below).double().mean())


def test_a_recipe_without_it_keeps_its_name():
    # Names of stored runs and simulations derive from it.
    recipe = Recipe(rate=0.1, epochs=2, batch=5)
    assert "private_steps" not in repr(recipe)
    private = DpSgd().on_training(LocalTraining(MLP, recipe)).recipe
    assert "PrivateSteps(clip=1.0" in repr(private)
    assert replace(private, private_steps=None) == recipe
    assert (private.steps(7), private.steps(7000), private.batch_size(25)) == (20, 20, 3)
