"""Virtual clients: their splits, sizes, pools and chunks."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.knowledge import Prior
from overheard.core.messages import Aggregate, Message
from overheard.core.parties import COHORT, SERVER
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.data.splits.by_user import ByUser
from overheard.data.splits.quantity import Quantity
from overheard.simulation.auxiliary_split import split_auxiliary
from overheard.simulation.cached_readings import MIN_PER_CLASS, build_pool
from overheard.simulation.chunk import DEFAULT_SPLITS, draw_chunks
from overheard.simulation.client_sizes import DEFAULT_SIZES, draw_size, size_range
from overheard.simulation.virtual_client import VirtualClient, draw_counts
from tests.simulation.small_run import CLIENTS, CountingCache, knowledge, server_view

LABELS = torch.tensor([0, 0, 0, 1, 1, 0, 1, 1, 1, 1])
QUARTERS = ((torch.arange(2), torch.arange(2, 5)), (torch.arange(5, 8), torch.arange(8, 10)))


class TestRows:
    def test_are_of_its_half_and_have_its_label_counts(self) -> None:
        rows = VirtualClient(3, 1, 0, (2, 3)).draw_rows(LABELS, QUARTERS, Seed(0))
        assert LABELS[rows].bincount().tolist() == [2, 3]
        assert set(rows.tolist()) <= {5, 6, 7, 8, 9}

    def test_are_of_its_quarter_if_it_has_one(self) -> None:
        rows = VirtualClient(3, 0, 0, (3, 3), quarter=1).draw_rows(LABELS, QUARTERS, Seed(0))
        assert LABELS[rows].bincount().tolist() == [3, 3]
        assert set(rows.tolist()) == {2, 3, 4}

    def test_repeat_only_after_all_of_the_label_are_used(self) -> None:
        # Half 0 has three of label 0, used 2 or 3 times for 7, and two of label 1, used twice.
        rows = VirtualClient(3, 0, 0, (7, 4)).draw_rows(LABELS, QUARTERS, Seed(0))
        assert sorted(rows.bincount().tolist()) == [2, 2, 2, 2, 3]


class TestCounts:
    def test_come_from_all_splits(self) -> None:
        # One label each, or all three.
        counts_drawn = [
            draw_counts(n, (Quantity(1), Quantity(3)), (9, 9), 3, Seed(0)) for n in range(30)
        ]
        kinds = {tuple(sorted(counts)) for counts in counts_drawn}
        assert kinds == {(0, 0, 9), (3, 3, 3)}

    @pytest.mark.parametrize(
        ("split", "message"),
        [(Quantity(5), "5 classes per client"), (ByUser(), "names no users")],
    )
    def test_a_split_that_cannot_be_drawn_from_is_a_reason_for_a_refusal(
        self, split, message
    ) -> None:
        with pytest.raises(NeedsError, match=f"another split or size: .*{message}"):
            draw_counts(0, (split,), (10, 10), 4, Seed(0))


def test_a_resampled_client_repeats_some_examples_and_never_has_others() -> None:
    labels = torch.zeros(4000, dtype=torch.long)
    first, second, third, fourth = torch.arange(4000).split(1000)
    quarters = ((first, second), (third, fourth))
    rows = VirtualClient(3, 1, 0, (2000,), resampled=True).draw_rows(labels, quarters, Seed(0))
    # 2,000 draws with replacement from 2,000 contain a share of 1 - 1/e = 0.632.
    assert len(rows) == 2000
    assert 0.60 < len(rows.unique()) / 2000 < 0.66
    assert int(rows.min()) >= 2000
    plain = VirtualClient(3, 1, 0, (2000,)).draw_rows(labels, quarters, Seed(0))
    assert len(plain.unique()) == 2000


def shares(number: int, classes: int = 10) -> torch.Tensor:
    counts = torch.tensor(draw_counts(number, DEFAULT_SPLITS, (200, 200), classes, Seed(0)))
    return counts / counts.sum()


@pytest.mark.parametrize("split", DEFAULT_SPLITS, ids=repr)
@pytest.mark.parametrize("size", [1, 5])
def test_every_split_allows_small_clients(split, size: int) -> None:
    assert sum(draw_counts(0, (split,), (size, size), 10, Seed(0))) == size


def test_prefers_no_label() -> None:
    # The mean of 600 shares of standard deviation below 0.3 has a standard error of 0.012.
    mean = torch.stack([shares(number) for number in range(600)]).mean(0)
    assert float((mean - 0.1).abs().max()) < 0.04


@given(counts=st.lists(st.integers(3, 40), min_size=2, max_size=5), seed=st.integers(0, 99))
def test_every_example_is_in_one_part_and_every_part_has_every_class(
    counts: list[int], seed: int
) -> None:
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    split = split_auxiliary(labels, len(counts), Seed(seed))
    parts = (split.held_out, *split.halves)
    assert torch.cat(parts).sort().values.tolist() == list(range(len(labels)))
    for rows in parts:
        assert len(labels[rows].unique()) == len(counts)


@given(counts=st.lists(st.integers(3, 40), min_size=2, max_size=5), seed=st.integers(0, 99))
def test_quarters_divide_their_half_and_share_only_single_examples(
    counts: list[int], seed: int
) -> None:
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    split = split_auxiliary(labels, len(counts), Seed(seed))
    for half, (first, second) in zip(split.halves, split.quarters, strict=True):
        assert set(half.tolist()) == {*first.tolist(), *second.tolist()}
        of_half, of_first, of_second = (
            labels[rows].bincount(minlength=len(counts)) for rows in (half, first, second)
        )
        is_single = (of_half == 1).long()
        assert (of_first + of_second).equal(of_half + is_single)
        assert int((of_first - of_second).min()) >= 0
        assert int((of_first - of_second).max()) <= 1


def test_a_fifth_is_held_out_and_an_odd_rest_gives_the_first_half_one_more() -> None:
    # 12 of class 0: 12 / 5 = 2.4, so 2 held out and 5 + 5; 3 of class 1: 1, 1 and 1;
    # 4 of class 2: 0.8, so 1 held out, then 2 and 1.
    labels = torch.repeat_interleave(torch.arange(3), torch.tensor([12, 3, 4]))
    split = split_auxiliary(labels, 3, Seed(0))
    counts = [labels[r].bincount().tolist() for r in (split.held_out, *split.halves)]
    assert counts == [[2, 1, 1], [5, 1, 2], [5, 1, 1]]


def test_refuses_labels_out_of_range() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        split_auxiliary(torch.arange(9) % 3, 2, Seed(0))


def test_each_quarter_is_augmented_from_its_own_examples() -> None:
    # Rows of each quarter have a value of their own, so that mixing them would be visible.
    labels = torch.arange(60) % 3
    split = split_auxiliary(labels, 3, Seed(0))
    inputs = torch.zeros(60, 1)
    values = ((100.0, 200.0), (-100.0, -200.0))
    for half in (0, 1):
        for quarter in (0, 1):
            inputs[split.quarters[half][quarter]] = values[half][quarter]
    result = build_pool(Examples(inputs, labels), split, Seed(1))
    for half in (0, 1):
        for quarter in (0, 1):
            own = result.examples.take(result.quarters[half][quarter])
            assert own.label_counts(3).tolist() == [MIN_PER_CLASS // 2] * 3
            assert torch.allclose(own.inputs, torch.tensor(values[half][quarter]))


def test_enough_examples_are_not_augmented() -> None:
    labels = torch.arange(900) % 3
    split = split_auxiliary(labels, 3, Seed(0))
    examples = Examples(torch.arange(900.0).unsqueeze(1), labels)
    result = build_pool(examples, split, Seed(1))
    for pooled, rows in zip(result.quarters, split.quarters, strict=True):
        for own, expected in zip(pooled, rows, strict=True):
            assert result.examples.inputs[own].flatten().long().equal(expected)


SIZES = (10, 60)


def draw(virtual: int, members: int | None = None, **settings):
    return draw_chunks(knowledge(virtual=virtual, **settings), SIZES, members, Seed(3))


class TestClients:
    def test_depend_on_the_prior(self) -> None:
        cache = CountingCache()
        mixed = draw(40, shelf=cache)
        assert draw(40, shelf=cache, prior=Prior((Quantity(1),))) != mixed


class TestCohorts:
    def test_have_different_members_of_one_half_and_one_recipe(self) -> None:
        for chunk in draw(70, members=5):
            for members_drawn in chunk.clients_per_reading():
                assert len(members_drawn) == len(set(members_drawn)) == 5
                assert len({client.half for client in members_drawn}) == 1
                assert len({client.recipe for client in members_drawn}) == 1

    def test_are_as_many_as_requested_and_from_both_halves(self) -> None:
        for virtual in (2, 9, 70):
            halves = [
                members_drawn[0].half
                for c in draw(virtual, members=5)
                for members_drawn in c.clients_per_reading()
            ]
            assert len(halves) == virtual
            assert set(halves) == {0, 1}

    def test_with_a_preference_differ_more_in_label_shares(self) -> None:
        # Clients have one label each. Random cohorts have about a third of each label; cohorts
        # with a preference have mostly one label.
        prior = Prior((Quantity(1),))
        largest: dict[int, list[float]] = {0: [], 1: []}
        for chunk in draw(128, members=8, prior=prior):
            for place, members_drawn in enumerate(chunk.clients_per_reading()):
                counts = np.array([client.counts for client in members_drawn]).sum(0)
                largest[place % 2].append(counts.max() / counts.sum())
        assert np.mean(largest[0]) < 0.75
        assert np.mean(largest[1]) > 0.9


@pytest.mark.parametrize("members", [None, 2, 100])
def test_of_eight_or_more_two_of_each_half_train_on_a_quarter_and_two_on_a_half(
    members: int | None,
) -> None:
    for virtual in (8, 9, 10, 13, 33):
        chunks = draw_chunks(
            knowledge(virtual=virtual), SIZES, members, Seed(3), with_quarters=True
        )
        drawn = [clients[0] for c in chunks for clients in c.clients_per_reading()]
        on_quarter = [one.half for one in drawn if one.quarter is not None]
        assert len(drawn) == virtual
        assert min(on_quarter.count(0), on_quarter.count(1)) >= 2
        assert len(drawn) - len(on_quarter) >= 2


ANY = Prior()


def view_of_aggregate(examples: int | None) -> View:
    body = Aggregate({}, frozenset(CLIENTS), examples)
    return View(frozenset({SERVER}), (Message(0, COHORT, frozenset({SERVER}), body),))


def test_the_range_is_wider_if_some_sizes_are_hidden() -> None:
    # 30 / 2 and 30 * 2.
    assert size_range(server_view(sizes=(None, 30, None)), ANY) == (15, 60)


def test_sizes_of_observers_are_ignored() -> None:
    messages = server_view(sizes=(20, 40, 30)).messages
    own_messages = [message for message in messages if message.sender in (SERVER, CLIENTS[0])]
    assert size_range(View(frozenset({CLIENTS[0]}), own_messages), ANY) == DEFAULT_SIZES


def test_without_reported_sizes_the_default_range_is_used() -> None:
    assert size_range(server_view(sizes=(None, None, None)), ANY) == DEFAULT_SIZES
    assert size_range(view_of_aggregate(None), ANY) == DEFAULT_SIZES


def test_the_total_of_a_cohort_bounds_the_range() -> None:
    # 300 examples of three clients are 100 each on average, so 50 to 200.
    assert size_range(view_of_aggregate(300), ANY) == (50, 200)


def test_an_implausible_size_is_refused_unless_the_prior_has_sizes() -> None:
    view = server_view(sizes=(20, 10**12, 30))
    with pytest.raises(NeedsError, match=r"1,000,000,000,000 .*: set virtual\.examples"):
        size_range(view, ANY)
    assert size_range(view, Prior(sizes=(5, 6))) == (5, 6)
    assert size_range(server_view(sizes=(20, 10**6, 30)), ANY) == (20, 10**6)


def test_drawn_sizes_are_log_uniform() -> None:
    # Half of a log-uniform range from 10 to 1,000 is below 100: 500 +- 16 of 1,000.
    sizes = [draw_size((10, 1000), Seed(0).child(n)) for n in range(1000)]
    assert math.isclose(sum(size < 100 for size in sizes), 500, abs_tol=64)
