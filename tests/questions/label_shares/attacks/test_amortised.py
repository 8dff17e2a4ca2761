"""Shares, intervals and sizes told from planted updates, and how estimates are pooled."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from overheard.core.attack import missing_needs
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.needs import AUXILIARY
from overheard.core.parties import COHORT, SERVER, Party, client
from overheard.core.prior import Prior
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.label_shares.attacks.amortised import Amortised, pooling_weights
from overheard.questions.label_shares.claim import LabelShares
from overheard.simulation.heard_alike import HeardAlike
from overheard.simulation.mixture import MIXTURE
from overheard.simulation.virtual_client import draw_counts
from overheard.testing.worlds.planted import (
    CLASSES,
    SKEWED,
    Overheard,
    blobs,
    federate,
    federate_often,
    hold,
)

pytestmark = pytest.mark.slow

ATTACK = Amortised(steps=60)
FOUR = tuple(map(client, range(4)))
EVERYBODY = (0, 1, 2, 3)
BLIND = 1.1
"""By which all alike misses each of the `SKEWED`: 2 * (0.8 - 0.25)."""

Claims = Mapping[Party, LabelShares]


def infer(
    view: View,
    knowledge: Knowledge,
    targets: Sequence[Party] = FOUR,
    attack: Amortised = ATTACK,
) -> Claims:
    return attack.infer(view, targets, knowledge, Seed(0))


def heard(run: Overheard) -> View:
    return run.transcript.seen_by(SERVER)


def shares_of(counts: Sequence[int]) -> Tensor:
    return torch.tensor(counts) / sum(counts)


def misses(claims: Claims) -> list[float]:
    """How far off each of the `SKEWED` is, in L1."""
    return [
        float((claim.shares - shares_of(SKEWED[int(who.split("/")[1])])).abs().sum())
        for who, claim in claims.items()
    ]


def held(claim: LabelShares, true: Tensor) -> list[bool]:
    """Which true shares lie inside the interval, ends included as far as float32 goes."""
    ends = zip(claim.bounds.low, true.tolist(), claim.bounds.high, strict=True)
    return [low - 1e-6 <= share <= high + 1e-6 for low, share, high in ends]


def widths(claim: LabelShares) -> list[float]:
    return [high - low for low, high in zip(claim.bounds.low, claim.bounds.high, strict=True)]


def with_virtual(knowledge: Knowledge, count: int) -> Knowledge:
    return replace(knowledge, means=replace(knowledge.means, virtual_clients=count))


@pytest.fixture(scope="module")
def leaked(leaky) -> Claims:
    return infer(heard(leaky), leaky.knowledge)


@pytest.fixture(scope="module")
def forty() -> tuple[Overheard, Claims]:
    """Forty clients of the kind that the attacker expects, with examples of their own."""
    counts = [draw_counts(n, MIXTURE, (40, 40), CLASSES, Seed(77)) for n in range(40)]
    run = federate(counts)
    knowledge = replace(run.knowledge, auxiliary=blobs((50,) * CLASSES, Seed(99)))
    return run, infer(heard(run), knowledge, tuple(map(client, range(40))))


@pytest.fixture(scope="module")
def view() -> View:
    """Clients 0 and 1 answer in both rounds, 2 in the first, 3 in the last."""
    return federate_often([(0, 1, 2), (0, 1, 3)])


@pytest.fixture(scope="module")
def often(view, leaky) -> Claims:
    return infer(view, leaky.knowledge)


@pytest.fixture(scope="module")
def hidden(leaky) -> Claims:
    view = federate_often([EVERYBODY], told=False)
    knowledge = replace(leaky.knowledge, prior=Prior(sizes=(10, 160)))
    return infer(view, knowledge)


@pytest.fixture(scope="module")
def together(leaky) -> LabelShares:
    """Of the four together, of whom only the mean update is read, and no size."""
    view = federate_often([EVERYBODY], told=False, summed=True)
    knowledge = replace(with_virtual(leaky.knowledge, 100), prior=Prior(sizes=(10, 160)))
    return infer(view, knowledge, [COHORT])[COHORT]


class TestOneRound:
    def test_finds_the_shares_that_leak(self, leaked):
        assert max(misses(leaked)) < 0.4

    def test_finds_nothing_where_updates_say_nothing_of_their_sender(self, tight):
        # They are those of even clients.
        claims = infer(heard(tight), tight.knowledge)
        assert min(misses(claims)) > BLIND - 0.2

    def test_says_which_label_is_there_beyond_doubt_and_never_quite_beyond(self, leaked):
        for place, who in enumerate(FOUR):
            chances = leaked[who].null_probability
            assert int(chances.argmin()) == place
            assert 0 < float(chances.min()) < 0.05
            assert leaked[who].absent.tolist() == (chances > 0.5).tolist()

    def test_a_size_that_is_told_is_given_back(self, leaked):
        told = [(c.size.examples, c.size.low, c.size.high) for c in leaked.values()]
        assert told == [(40, 40, 40)] * 4

    def test_networks_of_another_seed_claim_nearly_the_same(self, leaky, leaked):
        again = ATTACK.infer(heard(leaky), FOUR, leaky.knowledge, Seed(1))
        for who in FOUR:
            apart = float((again[who].shares - leaked[who].shares).abs().sum())
            assert 0 < apart < 0.3


class TestIntervals:
    def test_hold_about_nine_true_shares_in_ten(self, forty):
        told = []
        for who, claim in forty[1].items():
            told += held(claim, shares_of(forty[0].truth.counts[0, who].tolist()))
        # Errors of one client go together: 40 tries of 0.9 have a deviation of 0.05.
        assert sum(told) / len(told) >= 0.8

    def test_are_far_from_saying_that_anything_may_be(self, forty):
        wide = [width for claim in forty[1].values() for width in widths(claim)]
        assert sum(wide) / len(wide) < 0.25

    def test_say_that_much_may_be_where_nobody_learns(self, leaky):
        # A rate so small that no weight moves: every client, virtual or real, is read alike.
        still = [{name: torch.zeros_like(w) for name, w in leaky.start.items()}] * 4
        run = hold(leaky.start, still, SKEWED, leaky.knowledge.auxiliary)
        claims = infer(heard(run), replace(run.knowledge, recipe=Recipe(1e-30, 1, 8)))
        for claim in claims.values():
            assert min(widths(claim)) > 0.4
            # No label is likely to be there, or to be missing.
            assert float(claim.null_probability.min()) > 0.02
            assert float(claim.null_probability.max()) < 0.9
        assert min(misses(claims)) > BLIND - 0.3

    def test_are_numbers_for_a_client_that_sent_zeros_where_others_learn(self, leaky):
        still = [{name: torch.zeros_like(w) for name, w in leaky.start.items()}]
        run = hold(leaky.start, still, SKEWED[:1], leaky.knowledge.auxiliary)
        # A claim that is made has numbers: it refuses others.
        (claim,) = infer(heard(run), run.knowledge, [client(0)]).values()
        assert all(0 <= width < 1 for width in widths(claim))
        assert max(widths(claim)) > 0.05


class TestOverRounds:
    def test_finds_the_shares_of_whoever_was_heard_once_or_twice(self, often):
        assert often.keys() == set(FOUR)
        assert max(misses(often)) < 0.4

    def test_a_target_is_claimed_the_same_whoever_was_heard_more_often(
        self, view, leaky, often
    ):
        (alone,) = infer(view, leaky.knowledge, [client(3)]).values()
        assert torch.equal(alone.shares, often[client(3)].shares)
        assert alone.bounds == often[client(3)].bounds

    def test_one_round_may_be_enough(self, view, leaky, often):
        attack = replace(ATTACK, most_rounds=1)
        (first,) = infer(view, leaky.knowledge, [client(0)], attack).values()
        during = infer(view.during([0]), leaky.knowledge, [client(0)])
        assert torch.equal(first.shares, during[client(0)].shares)
        assert not torch.equal(first.shares, often[client(0)].shares)

    @pytest.mark.parametrize(
        ("most", "expected"),
        [
            (1, (2,)),
            (2, (2, 9)),
            (3, (2, 5, 9)),
            (4, (2, 4, 7, 9)),
            (99, (2, 3, 4, 5, 7, 8, 9)),
        ],
    )
    def test_reads_the_first_the_last_and_evenly_between(self, most, expected):
        # Of seven rounds those in places 0, 6 k / (most - 1), ..., 6.
        group = HeardAlike(FOUR, (2, 3, 4, 5, 7, 8, 9), None)
        spread = replace(ATTACK, most_rounds=most)._spread(group)
        assert spread == replace(group, rounds=expected)

    @given(st.integers(1, 30), st.integers(1, 40))
    def test_as_many_rounds_are_read_as_there_may_and_can_be(self, most, there):
        group = HeardAlike(FOUR, tuple(range(there)), None)
        rounds = replace(ATTACK, most_rounds=most)._spread(group).rounds
        assert len(rounds) == min(most, there)
        assert rounds[0] == 0
        assert most == 1 or rounds[-1] == there - 1


class TestHiddenSizes:
    def test_are_told_with_an_interval_that_holds_the_true_one(self, hidden):
        # 40 each; of four intervals of 0.9 two or more miss once in twenty times.
        sizes = [claim.size for claim in hidden.values()]
        assert sum(size.low <= 40 <= size.high for size in sizes) >= 3
        # The prior spans a factor of 16.
        assert all(size.low < size.examples < size.high < 8 * size.low for size in sizes)

    def test_do_not_keep_the_shares_from_being_found(self, hidden):
        assert max(misses(hidden)) < 0.5

    def test_only_those_that_are_hidden_are_told_by_length(self, leaky):
        view = federate_often([EVERYBODY])
        last = view.messages[-1]
        mixed = replace(
            view,
            messages=(
                *view.messages[:-1],
                replace(last, body=replace(last.body, examples=None)),
            ),
        )
        knowledge = with_virtual(leaky.knowledge, 100)
        in_clear, hidden = infer(mixed, knowledge, [client(0), client(3)]).values()
        assert (in_clear.size.low, in_clear.size.high) == (40, 40)
        assert hidden.size.low < hidden.size.high

    def test_a_target_too_wild_to_be_read_gets_what_the_prior_says(self, leaky):
        view = federate_often([EVERYBODY])
        last = view.messages[-1]
        wild = {name: delta * 1e30 for name, delta in last.body.delta.items()}
        messages = (*view.messages[:-1], replace(last, body=replace(last.body, delta=wild)))
        knowledge = with_virtual(leaky.knowledge, 100)
        tame, claim = infer(
            replace(view, messages=messages), knowledge, [client(0), client(3)]
        ).values()
        # The mean of the prior's shares: next to a guess, with bounds that leave all open.
        assert float((claim.shares - 0.25).abs().max()) < 0.15
        assert min(claim.bounds.high) > 0.5
        assert max(claim.bounds.low) < 0.1
        assert float((tame.shares - 0.25).abs().max()) > 0.3


class TestCohort:
    def test_has_the_shares_of_all_together(self, together):
        # Together they hold every class equally often.
        assert float((together.shares - 0.25).abs().sum()) < 0.3
        assert sum(held(together, torch.full((CLASSES,), 0.25))) >= 3

    def test_has_the_size_of_all_together(self, together):
        assert together.size.low <= 160 <= together.size.high
        assert together.size.high < 16 * together.size.low

    def test_of_one_that_holds_little_of_a_class_is_no_even_one(self, leaky):
        # Of clients 0 and 1: 34, 36, 6, 4 of 80.
        view = federate_often([(0, 1)], summed=True)
        (claim,) = infer(view, with_virtual(leaky.knowledge, 100), [COHORT]).values()
        true = shares_of((34, 36, 6, 4))
        # All alike misses by 2 * (0.875 - 0.5) = 0.75.
        assert float((claim.shares - true).abs().sum()) < 0.4


class TestRefusals:
    def test_auxiliary_examples_that_lack_a_class_are_a_missing_need(self, leaky):
        knowledge = replace(leaky.knowledge, auxiliary=blobs((12, 12, 12, 0), Seed(99)))
        missing = missing_needs(ATTACK, heard(leaky), client(0), knowledge)
        assert missing == (AUXILIARY.words,)

    def test_fewer_than_three_of_a_class_are_refused_with_the_mend(self, leaky):
        knowledge = replace(leaky.knowledge, auxiliary=blobs((12, 12, 12, 2), Seed(99)))
        assert not missing_needs(ATTACK, heard(leaky), client(0), knowledge)
        with pytest.raises(NeedsError, match="3 auxiliary examples or more of every class"):
            infer(heard(leaky), knowledge)

    def test_three_of_a_class_are_enough(self, leaky):
        few: Examples = blobs((3,) * CLASSES, Seed(99))
        knowledge = with_virtual(replace(leaky.knowledge, auxiliary=few), 40)
        assert infer(heard(leaky), knowledge).keys() == set(FOUR)

    @pytest.mark.parametrize("wrong", [{"most_rounds": 0}, {"steps": 0}])
    def test_settings_that_mean_nothing(self, wrong):
        with pytest.raises(ValueError, match="1 or more"):
            Amortised(**wrong)


class TestPoolingWeights:
    TRUE = torch.tensor([[0.7, 0.3], [0.2, 0.8]], dtype=torch.float64)

    def weights(self, *estimates: Tensor) -> list[float]:
        return pooling_weights(torch.stack(estimates), self.TRUE).tolist()

    def test_all_weight_is_on_an_estimate_that_is_right(self):
        flat = torch.full((2, 2), 0.5, dtype=torch.float64)
        assert self.weights(self.TRUE, flat) == pytest.approx([1, 0], abs=1e-5)

    def test_two_that_err_either_way_are_weighed_by_how_far(self):
        # Errors +0.1 e and -0.3 e: 3/4 * 0.1 = 1/4 * 0.3.
        error = torch.tensor([[0.1, -0.1], [-0.1, 0.1]], dtype=torch.float64)
        assert self.weights(self.TRUE + error, self.TRUE - 3 * error) == pytest.approx(
            [0.75, 0.25], abs=1e-4
        )

    def test_two_whose_errors_are_unlike_are_weighed_by_their_squares(self):
        # Errors of length 0.1 and 0.2 at a right angle: w = (1/0.01) / (1/0.01 + 1/0.04).
        one = torch.tensor([[0.1, 0.0], [0.0, 0.0]], dtype=torch.float64)
        other = torch.tensor([[0.0, 0.0], [0.0, 0.2]], dtype=torch.float64)
        assert self.weights(self.TRUE + one, self.TRUE + other) == pytest.approx(
            [0.8, 0.2], abs=1e-4
        )

    def test_no_weight_is_below_0_where_that_would_fit_better(self):
        # 2 * first - second would be right.
        error = torch.tensor([[0.1, -0.1], [-0.1, 0.1]], dtype=torch.float64)
        assert self.weights(self.TRUE + error, self.TRUE + 2 * error) == pytest.approx(
            [1, 0], abs=1e-4
        )

    @settings(deadline=None, max_examples=50)
    @given(st.integers(1, 8), st.integers(1, 20), st.integers(0, 10**6))
    def test_pooled_estimates_miss_no_more_than_the_best_alone(self, count, clients, seed):
        drawn = torch.from_numpy(Seed(seed).numpy().dirichlet([1.0] * 3, (count + 1, clients)))
        estimates, true = drawn[:count], drawn[count]
        weights = pooling_weights(estimates, true)
        assert float(weights.min()) >= 0
        assert float(weights.sum()) == pytest.approx(1)
        pooled = torch.einsum("e,evc->vc", weights, estimates)
        alone = (estimates - true).square().sum((1, 2))
        # The sum of 1 is one row of the fit, however heavy.
        assert float((pooled - true).square().sum()) <= float(alone.min()) + 1e-4
