"""Each of the four forms in cases with known shares."""

import math
from dataclasses import replace
from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import NeedsError
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.questions.label_shares.attacks.ramakrishna import (
    Form,
    Ramakrishna,
    class_bias_gradients,
    estimate_by_ratio,
    full_batch_recipe,
    project_onto_simplex,
)
from overheard.testing.planted_labels import SKEWED
from overheard.testing.trial import PlantedRun
from tests.runs.one_step import (
    KNOWLEDGE,
    RECIPE,
    ZERO_WEIGHTS,
    infer_shares,
    make_view,
    train_step,
    unit_examples,
)

FORMS = get_args(Form)
TRAINED = ["auxiliary_gradient", "auxiliary_gradient_weights"]


def test_shares_sum_to_one_even_if_others_fit_better():
    # Twice the change of (5, 3, 0) / 8 asks for 1/3 + 2 (n / 8 - 1/3) = (0.917, 0.417, -0.333).
    # The nearest shares are 1/6 less each, and 0. A row for the sum that gave way would find
    # more than 1 in all, and after rescaling nearer ones than 3/4 and 1/4.
    twice = {name: 2 * change for name, change in train_step((5, 3, 0)).items()}
    shares = infer_shares(Ramakrishna(form="auxiliary_gradient"), make_view(twice, 8))
    assert shares == pytest.approx([0.75, 0.25, 0], abs=1e-3)


H = math.log(3) / 2
SOFT_START = {"0.weight": torch.zeros(3, 3), "0.bias": torch.tensor([0.0, 0.0, -20.0])}
SOFT_DELTA = {"0.weight": torch.zeros(3, 3), "0.bias": torch.tensor([H, -H, 0.0])}
SOFT = replace(KNOWLEDGE, recipe=Recipe(rate=2.0, epochs=1, batch=2))


class TestSoftLabel:
    """The client ends with W = 0 and b = (H, -H, -20), H = ln 3 / 2.

    It answers every example with q = (3/4, 1/4, 0), so (I - S) p = p - q. Four examples in
    batches of 2 at a rate of 2: kappa = 4, and p = q + db / 4.
    """

    def test_uses_the_outputs_of_the_clients_model(self):
        first = 0.75 + H / 4
        shares = infer_shares(Ramakrishna(), make_view(SOFT_DELTA, 4, SOFT_START), SOFT)
        assert shares == pytest.approx([first, 1 - first, 0], abs=1e-5)

    def test_counts_every_step_of_a_minibatch(self):
        # Twice the epochs, half the rate: kappa is the same 4.
        twice = replace(SOFT, recipe=Recipe(rate=1.0, epochs=2, batch=2))
        view = make_view(SOFT_DELTA, 4, SOFT_START)
        assert infer_shares(Ramakrishna(), view, twice) == infer_shares(
            Ramakrishna(), view, SOFT
        )

    def test_a_column_is_the_gradient_of_one_class(self):
        # A blank model answers 1/3: p - y = 1/3, less 1 on the diagonal.
        (system,) = class_bias_gradients(ZERO_WEIGHTS, [ZERO_WEIGHTS], KNOWLEDGE)
        torch.testing.assert_close(
            system, torch.full((3, 3), 1 / 3).double() - torch.eye(3).double()
        )


class TestRatio:
    # Alone, an example of class k moves row c by [c = k] - 1/3 at feature k, all else by 0.
    alone = torch.eye(3)[:, None, :] * (torch.eye(3) - 1 / 3)[:, :, None]

    def change(self, shares: list[float]) -> torch.Tensor:
        """Return the change from ten examples with these shares."""
        return 10 * torch.einsum("k,kcj->cj", torch.tensor(shares), self.alone)

    def test_averages_over_the_weights_with_plausible_estimates(self):
        # Feature c gives row c the true share; feature j another, (p_j / 3 - 1/6) / (-1/6)
        # = 1 - 2 p_j. For p = (0.4, 0.4, 0.2), below 0.5 only:
        #   row 0: 0.4, 0.2, (0.6) -> 0.3;   row 1 alike;   row 2: 0.2, 0.2, 0.2 -> 0.2.
        # Their sum is 0.8: each gets a third of the missing 0.2.
        found = estimate_by_ratio(self.change([0.4, 0.4, 0.2]), 10, self.alone)
        assert found.tolist() == pytest.approx([0.3667, 0.3667, 0.2667], abs=1e-4)

    def test_gives_an_even_share_without_plausible_estimates(self):
        # p = (1, 0, 0) gives 1, 0 or -1 everywhere: none of them strictly within 0 and 0.5.
        found = estimate_by_ratio(self.change([1.0, 0.0, 0.0]), 10, self.alone)
        assert found.tolist() == pytest.approx([1 / 3] * 3)

    def test_compares_with_training_on_each_class_alone(self):
        # As above, by way of training: 20 examples each, so that one step is one step.
        knowledge = replace(KNOWLEDGE, auxiliary=unit_examples((20, 20, 20)))
        shares = infer_shares(
            Ramakrishna(form="ratio"), make_view(train_step((8, 8, 4)), 20), knowledge
        )
        assert shares == pytest.approx([0.3667, 0.3667, 0.2667], abs=1e-4)

    def test_is_refused_if_the_size_is_hidden(self):
        with pytest.raises(NeedsError, match="client/0 needs the number of its examples"):
            infer_shares(Ramakrishna(form="ratio"), make_view(train_step((5, 3, 0)), None))


class TestHiddenSize:
    @staticmethod
    def knowledge():
        """Return knowledge with batches of 4, so that steps depend on the size."""
        return replace(KNOWLEDGE, recipe=Recipe(rate=0.5, epochs=1, batch=4))

    def test_weights_give_the_shares_by_direction_alone(self):
        attack = Ramakrishna(form="auxiliary_gradient_weights")
        shares = infer_shares(attack, make_view(train_step((5, 3, 0)), None), self.knowledge())
        assert shares == pytest.approx([5 / 8, 3 / 8, 0], abs=1e-5)

    def test_a_bias_gives_shares_that_explain_its_direction(self):
        attack = Ramakrishna(form="auxiliary_gradient")
        shares = torch.tensor(
            infer_shares(attack, make_view(train_step((5, 3, 1)), None), self.knowledge())
        )
        # One class alone moves the bias along e_k - 1/3, so shares move it along p - 1/3.
        cosine = torch.nn.functional.cosine_similarity(
            shares - 1 / 3, torch.tensor([5, 3, 1]) / 9 - 1 / 3, dim=0
        )
        assert float(cosine) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("form", TRAINED)
def test_compares_single_class_training_and_updates_per_step(form):
    # Two steps of class 1 alone, by the client and by the attacker: the same change. Were it
    # taken for that of one step, half of it would explain the client's.
    twice = replace(RECIPE, epochs=2)
    view = make_view(train_step((0, 8, 0), recipe=twice), 8)
    shares = infer_shares(Ramakrishna(form=form), view, replace(KNOWLEDGE, recipe=twice))
    assert shares == pytest.approx([0, 1, 0], abs=1e-4)


class TestTrainedAlone:
    def test_an_epoch_is_one_step_even_for_the_largest_class(self):
        uneven = replace(
            KNOWLEDGE,
            auxiliary=unit_examples((2, 9, 4)),
            recipe=Recipe(rate=0.5, epochs=3, batch=2),
        )
        whole = full_batch_recipe(uneven)
        assert [whole.steps(examples) for examples in (2, 9, 4)] == [3, 3, 3]


class TestOntoSimplex:
    def test_subtracts_the_same_from_each_until_the_sum_is_one(self):
        # (0.8 + 0.6 - 1) / 2 = 0.2 off the first two; the third is below it.
        assert project_onto_simplex(torch.tensor([0.8, 0.6, -0.2])).tolist() == pytest.approx(
            [0.6, 0.4, 0]
        )

    def test_large_values_keep_their_precision(self):
        assert project_onto_simplex(torch.tensor([1e30, 1e30, 0.0])).tolist() == [0.5, 0.5, 0]

    @given(st.lists(st.floats(-1e20, 1e20), min_size=2, max_size=6))
    def test_returns_shares_and_does_not_change_shares(self, values):
        shares = project_onto_simplex(torch.tensor(values, dtype=torch.float64))
        assert float(shares.min()) >= 0
        assert float(shares.sum()) == pytest.approx(1)
        torch.testing.assert_close(project_onto_simplex(shares), shares)


def mean_distance(form: Form, run: PlantedRun) -> float:
    """Return the mean L1 error over clients; even shares have 1.1."""
    targets = [client(number) for number in range(len(SKEWED))]
    view = run.transcript.seen_by(SERVER)
    claims = Ramakrishna(form=form).infer(view, targets, run.knowledge, Seed(0))
    true = [torch.tensor(counts) / sum(counts) for counts in SKEWED]
    off = [claims[who].shares - shares for who, shares in zip(targets, true, strict=True)]
    return float(torch.stack(off).abs().sum(1).mean())


@pytest.mark.parametrize("form", FORMS)
class TestOnMinibatches:
    def test_is_better_than_even_shares_if_updates_leak(self, form, leaky):
        assert mean_distance(form, leaky) < 1.1 - 0.05

    def test_is_not_better_than_even_shares_without_a_leak(self, form, tight):
        assert mean_distance(form, tight) > 1.1 - 0.05
