"""Shares, intervals and sizes from planted updates, and pooled estimates."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from overheard.core.attack import missing_needs
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge, Prior
from overheard.core.messages import Update
from overheard.core.parties import COHORT, SERVER, Party, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.view import View
from overheard.questions.label_shares.attacks.amortised import Amortised, steps_scale
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.estimators.doubt import (
    NOISY,
    OTHER_INPUTS,
    OTHER_SIZE,
    POORLY_EXPLAINED,
)
from overheard.simulation.chunk import DEFAULT_SPLITS
from overheard.simulation.target_groups import TargetGroup
from overheard.simulation.virtual_client import draw_counts
from overheard.testing.planted_labels import (
    CLASSES,
    SKEWED,
    assemble_run,
    blobs,
    simulate_one_round,
)
from overheard.testing.trial import PlantedRun
from tests.questions.label_shares.simulated_view import simulate_view
from tests.runs.changed_updates import change_updates

pytestmark = pytest.mark.slow

ATTACK = Amortised(steps=40)
FOUR = tuple(map(client, range(4)))
EVERYBODY = (0, 1, 2, 3)
BLIND = 1.1
"""L1 error of even shares for each of the `SKEWED`: 2 * (0.8 - 0.25)."""

Claims = Mapping[Party, LabelShares]


def infer(
    view: View,
    knowledge: Knowledge,
    targets: Sequence[Party] = FOUR,
    attack: Amortised = ATTACK,
) -> Claims:
    return attack.infer(view, targets, knowledge, Seed(0))


def server_view(run: PlantedRun) -> View:
    return run.transcript.seen_by(SERVER)


def shares_of(counts: Sequence[int]) -> Tensor:
    return torch.tensor(counts) / sum(counts)


def l1_errors(claims: Claims) -> list[float]:
    """Return the L1 error for each of the `SKEWED`."""
    return [
        float((claim.shares - shares_of(SKEWED[int(target.split("/")[1])])).abs().sum())
        for target, claim in claims.items()
    ]


def is_covered(claim: LabelShares, true: Tensor) -> list[bool]:
    """Return which true shares are inside their intervals, with a float32 tolerance."""
    ends = zip(claim.bounds.low, true.tolist(), claim.bounds.high, strict=True)
    return [low - 1e-6 <= share <= high + 1e-6 for low, share, high in ends]


def widths(claim: LabelShares) -> list[float]:
    return [high - low for low, high in zip(claim.bounds.low, claim.bounds.high, strict=True)]


def with_virtual(knowledge: Knowledge, count: int) -> Knowledge:
    return replace(knowledge, compute=replace(knowledge.compute, virtual_clients=count))


@pytest.fixture(scope="module")
def leaked(leaky) -> Claims:
    return infer(server_view(leaky), leaky.knowledge)


@pytest.fixture(scope="module")
def forty() -> tuple[PlantedRun, Claims]:
    """Forty clients that follow the attacker's prior, with other examples."""
    counts = [draw_counts(n, DEFAULT_SPLITS, (40, 40), CLASSES, Seed(77)) for n in range(40)]
    run = simulate_one_round(counts)
    knowledge = replace(run.knowledge, auxiliary=blobs((50,) * CLASSES, Seed(99)))
    return run, infer(server_view(run), knowledge, tuple(map(client, range(40))))


@pytest.fixture(scope="module")
def view() -> View:
    """Clients 0 and 1 participate in both rounds, 2 in the first, 3 in the last."""
    return simulate_view([(0, 1, 2), (0, 1, 3)])


@pytest.fixture(scope="module")
def often(view, leaky) -> Claims:
    return infer(view, leaky.knowledge)


@pytest.fixture(scope="module")
def hidden(leaky) -> Claims:
    view = simulate_view([EVERYBODY], with_sizes=False)
    knowledge = replace(leaky.knowledge, prior=Prior(sizes=(10, 160)))
    return infer(view, knowledge)


@pytest.fixture(scope="module")
def together(leaky) -> LabelShares:
    """The claim about four clients from their mean update, without sizes."""
    view = simulate_view([EVERYBODY], with_sizes=False, aggregated=True)
    knowledge = replace(with_virtual(leaky.knowledge, 100), prior=Prior(sizes=(10, 160)))
    return infer(view, knowledge, [COHORT])[COHORT]


class TestOneRound:
    def test_finds_the_shares_that_leak(self, leaked):
        assert max(l1_errors(leaked)) < 0.4

    def test_training_its_networks_removes_a_third_of_the_error_or_more(self, leaked, leaky):
        # One step leaves the networks untrained: the equation of the output bias decides.
        untrained = infer(server_view(leaky), leaky.knowledge, FOUR, Amortised(steps=1))
        assert sum(l1_errors(leaked)) < 2 / 3 * sum(l1_errors(untrained))

    def test_finds_nothing_without_a_leak(self, tight):
        # All updates are those of balanced clients.
        claims = infer(server_view(tight), tight.knowledge)
        assert min(l1_errors(claims)) > BLIND - 0.2

    def test_is_nearly_but_never_fully_certain_of_the_main_label(self, leaked):
        for label, target in enumerate(FOUR):
            chances = leaked[target].null_probability
            assert int(chances.argmin()) == label
            assert 0 < float(chances.min()) < 0.05
            assert leaked[target].absent.tolist() == (chances > 0.5).tolist()


class TestIntervals:
    def test_contain_about_nine_true_shares_in_ten(self, forty):
        covered = []
        for target, claim in forty[1].items():
            counts = forty[0].truth.facts.need(LabelCounts).counts_of(target, (0,))
            covered += is_covered(claim, shares_of(counts.tolist()))
        # Errors of one client are correlated: 40 trials of 0.9 have a deviation of 0.05.
        assert sum(covered) / len(covered) >= 0.8

    def test_are_informative(self, forty):
        wide = [width for claim in forty[1].values() for width in widths(claim)]
        assert sum(wide) / len(wide) < 0.25

    def test_are_wide_if_no_client_learns(self, leaky):
        # With so small a rate no weight changes: all clients have equal features.
        start = server_view(leaky).broadcasts()[0]
        still = [{name: torch.zeros_like(w) for name, w in start.items()}] * 4
        run = assemble_run(start, still, SKEWED, leaky.knowledge.auxiliary)
        claims = infer(server_view(run), replace(run.knowledge, recipe=Recipe(1e-30, 1, 8)))
        for claim in claims.values():
            assert min(widths(claim)) > 0.4
            # No label is likely to be present or absent.
            assert float(claim.null_probability.min()) > 0.02
            assert float(claim.null_probability.max()) < 0.9
        assert min(l1_errors(claims)) > BLIND - 0.3

    def test_are_finite_for_a_client_with_a_zero_update(self, leaky):
        start = server_view(leaky).broadcasts()[0]
        still = [{name: torch.zeros_like(w) for name, w in start.items()}]
        run = assemble_run(start, still, SKEWED[:1], leaky.knowledge.auxiliary)
        # A claim refuses values that are not finite.
        (claim,) = infer(server_view(run), run.knowledge, [client(0)]).values()
        assert all(0 <= width < 1 for width in widths(claim))
        assert max(widths(claim)) > 0.05


class TestDoubt:
    """The forty clients and the virtual ones draw their examples from the same clouds."""

    def test_clients_like_the_virtual_ones_are_trusted(self, forty):
        assert {claim.doubt() for claim in forty[1].values()} == {None}

    def test_noise_that_the_attacker_does_not_know_is_noticed(self, forty):
        run, _ = forty
        generator = Seed(8).generator()

        def noised(update: Update):
            delta = {
                name: part + part.std() * torch.randn(part.shape, generator=generator)
                for name, part in update.delta.items()
            }
            return {"delta": delta}

        view = server_view(run)
        view = replace(view, messages=change_updates(view.messages, noised))
        knowledge = replace(run.knowledge, auxiliary=blobs((50,) * CLASSES, Seed(99)))
        claims = infer(view, knowledge, tuple(map(client, range(40))))
        assert {claim.doubt() for claim in claims.values()} == {NOISY}

    def test_examples_of_another_kind_are_noticed(self, forty):
        run, _ = forty
        auxiliary = blobs((50,) * CLASSES, Seed(99))
        # Another instrument: the inputs are mirrored.
        flipped = replace(auxiliary, inputs=auxiliary.inputs.flip(1))
        knowledge = replace(run.knowledge, auxiliary=flipped)
        claims = infer(server_view(run), knowledge, tuple(map(client, range(40))))
        assert {claim.doubt() for claim in claims.values()} == {POORLY_EXPLAINED}

    @pytest.mark.parametrize("factor", [3, 1 / 3])
    def test_clients_that_report_another_size_are_doubted_and_no_others(self, forty, factor):
        run, _ = forty
        liars, everybody = set(map(client, range(8))), tuple(map(client, range(40)))
        view = server_view(run)
        messages = change_updates(
            view.messages, lambda update: {"examples": round(update.examples * factor)}, liars
        )
        knowledge = replace(run.knowledge, auxiliary=blobs((50,) * CLASSES, Seed(99)))
        claims = infer(replace(view, messages=messages), knowledge, everybody)
        doubted = {target for target, one in claims.items() if one.doubt() == OTHER_SIZE}
        assert doubted <= liars
        # The smallest update of 40 examples may be that of 13.
        assert len(doubted) >= 6
        assert {one.doubt() for one in claims.values()} == {OTHER_SIZE, None}

    def test_a_column_in_other_units_is_noticed(self, forty):
        run, _ = forty
        auxiliary = blobs((50,) * CLASSES, Seed(99))
        units = torch.ones(auxiliary.inputs.shape[1])
        units[0] = 0.2
        knowledge = replace(
            run.knowledge, auxiliary=replace(auxiliary, inputs=auxiliary.inputs * units)
        )
        claims = infer(server_view(run), knowledge, tuple(map(client, range(40))))
        assert {claim.doubt() for claim in claims.values()} <= {POORLY_EXPLAINED, OTHER_INPUTS}


class TestOverRounds:
    def test_finds_the_shares_of_targets_observed_once_or_twice(self, often):
        assert often.keys() == set(FOUR)
        assert max(l1_errors(often)) < 0.4

    def test_can_use_only_the_first_round(self, view, leaky, often):
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
    def test_reads_the_first_the_last_and_evenly_spaced_rounds(self, most, expected):
        # Of seven rounds, those at positions 0, 6 k / (most - 1), ..., 6.
        group = TargetGroup(FOUR, (2, 3, 4, 5, 7, 8, 9), None)
        spread = replace(ATTACK, most_rounds=most)._select_rounds(group)
        assert spread == replace(group, rounds=expected)


class TestHiddenSizes:
    def test_are_estimated_with_intervals_that_contain_the_truth(self, hidden):
        # 40 each; of four intervals of 0.9 two or more miss once in twenty times.
        sizes = [claim.size for claim in hidden.values()]
        assert sum(size.low <= 40 <= size.high for size in sizes) >= 3
        # The prior spans a factor of 16.
        assert all(size.low < size.examples < size.high < 8 * size.low for size in sizes)

    def test_do_not_prevent_finding_the_shares(self, hidden):
        assert max(l1_errors(hidden)) < 0.5

    def test_only_hidden_sizes_are_estimated(self, leaky):
        view = simulate_view([EVERYBODY])
        hide = change_updates(view.messages, lambda update: {"examples": None}, [client(3)])
        mixed = replace(view, messages=hide)
        knowledge = with_virtual(leaky.knowledge, 100)
        in_clear, hidden = infer(mixed, knowledge, [client(0), client(3)]).values()
        assert (in_clear.size.low, in_clear.size.high) == (40, 40)
        assert hidden.size.low < hidden.size.high

    def test_a_target_without_finite_features_gets_the_prior_claim(self, leaky):
        view = simulate_view([EVERYBODY])

        def wild(update: Update):
            return {"delta": {name: delta * 1e30 for name, delta in update.delta.items()}}

        messages = change_updates(view.messages, wild, [client(3)])
        knowledge = with_virtual(leaky.knowledge, 100)
        tame, claim = infer(
            replace(view, messages=messages), knowledge, [client(0), client(3)]
        ).values()
        # The mean of the prior's shares: close to a guess, with wide intervals.
        assert float((claim.shares - 0.25).abs().max()) < 0.15
        assert min(claim.bounds.high) > 0.5
        assert max(claim.bounds.low) < 0.1
        assert float((tame.shares - 0.25).abs().max()) > 0.3


class TestCohort:
    def test_has_the_pooled_shares_of_all_clients(self, together):
        # Together they hold every class equally often.
        assert float((together.shares - 0.25).abs().sum()) < 0.3
        assert sum(is_covered(together, torch.full((CLASSES,), 0.25))) >= 3

    def test_has_the_total_size_of_all_clients(self, together):
        assert together.size.low <= 160 <= together.size.high
        assert together.size.high < 16 * together.size.low

    def test_an_imbalanced_cohort_is_not_claimed_balanced(self, leaky):
        # Of clients 0 and 1: 34, 36, 6, 4 of 80.
        view = simulate_view([(0, 1)], aggregated=True)
        (claim,) = infer(view, with_virtual(leaky.knowledge, 100), [COHORT]).values()
        true = shares_of((34, 36, 6, 4))
        # Even shares have an error of 2 * (0.875 - 0.5) = 0.75.
        assert float((claim.shares - true).abs().sum()) < 0.4


class TestRefusals:
    def test_refuses_fewer_than_three_examples_of_a_class_and_says_what_to_do(self, leaky):
        knowledge = replace(leaky.knowledge, auxiliary=blobs((12, 12, 12, 2), Seed(99)))
        assert not missing_needs(ATTACK, server_view(leaky), client(0), knowledge)
        with pytest.raises(NeedsError, match="3 auxiliary examples or more of every class"):
            infer(server_view(leaky), knowledge)


def test_the_scale_of_steps_is_known_for_plain_sgd_alone():
    sizes = torch.tensor([8, 9])
    # Batches of 4 in 2 epochs: 4 and 6 steps of 0.1. Momentum 0.5 counts the last one once, the
    # one before 1.5 times, then 1.75, 1.875, 1.9375 and 1.96875.
    recipe = Recipe(rate=0.1, epochs=2, batch=4, momentum=0.5)
    assert steps_scale(recipe, sizes).tolist() == pytest.approx([0.6125, 1.003125])
    plain = replace(recipe, momentum=0.0)
    assert steps_scale(plain, sizes).tolist() == pytest.approx([0.4, 0.6])
    for other in (
        {"loss": "squared_error"},
        {"proximal": 0.1},
        {"weight_decay": 0.1},
        {"label_smoothing": 0.1},
        {"optimizer": "adam", "momentum": 0.0},
    ):
        assert steps_scale(replace(recipe, **other), sizes) is None
    assert steps_scale(None, sizes) is None
