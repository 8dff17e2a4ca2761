"""Metadata of updates."""

from math import log, log1p, nan

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.parties import SERVER, client, shadow_device
from overheard.linkage.told_beside import PLACE, crowd_of, less_mean, told_beside
from tests.worlds.planted_crowd import heard, said

A, B, C = (client(number) for number in range(3))


class TestListSenders:
    def test_omits_observers_and_excluded_parties(self):
        view = heard(
            said(0, A), said(0, shadow_device(0)), said(1, SERVER), said(1, B), said(1, A)
        )
        assert crowd_of(view, {shadow_device(0)}) == (A, B)


class TestReadMetadata:
    def test_reads_log_sizes_and_centred_metrics(self):
        view = heard(
            said(0, A, examples=1, metrics={"loss": 1.0}),
            said(0, B, examples=3, metrics={"loss": 2.0}),
            said(1, A, examples=1, metrics={"loss": 0.5}),
            said(1, B, examples=3, metrics={"loss": 0.7}),
        )
        found = told_beside(view, (A, B), order=False)
        assert found.names == ("loss",)
        assert found.sizes.tolist() == pytest.approx([log(2), log(4), log(2), log(4)])
        assert found.numbers[:, 0].tolist() == pytest.approx([-0.5, 0.5, -0.1, 0.1])
        assert (found.senders, found.rounds.tolist()) == ((A, B, A, B), [0, 0, 1, 1])

    def test_reads_no_weight(self):
        class Unreadable(dict):
            def __getitem__(self, name):
                raise AssertionError(name)

        message = said(0, A, examples=2)
        object.__setattr__(message.body, "delta", Unreadable(a=torch.zeros(1)))
        assert told_beside(heard(message), (A,), order=True).sizes.tolist() == [log1p(2)]

    def test_other_senders_do_not_change_the_mean(self):
        messages = (said(0, A, metrics={"loss": 1.0}), said(0, B, metrics={"loss": 3.0}))
        found = told_beside(
            heard(*messages, said(0, shadow_device(0), metrics={"loss": 90.0})),
            (A, B),
            order=False,
        )
        assert found.numbers[:, 0].tolist() == [-1, 1]

    def test_missing_values_are_nan(self):
        view = heard(
            said(0, A, examples=5, metrics={"loss": 1.0, "seconds": float("inf")}),
            said(0, B, metrics={"loss": 3.0}),
            said(0, C),
        )
        found = told_beside(view, (A, B, C), order=False)
        assert found.names == ("loss", "seconds")
        assert found.sizes.isfinite().tolist() == [True, False, False]
        assert found.numbers[:, 0].tolist()[:2] == [-1, 1]
        assert found.numbers.isfinite().tolist() == [[True, False], [True, False], [False] * 2]

    def test_orders_replies_from_0_to_1_in_each_round(self):
        view = heard(said(0, B), said(0, C), said(0, A), said(1, A), said(1, B))
        found = told_beside(view, (A, B, C), order=True)
        assert found.names == (PLACE,)
        # 0, 1/2, 1 less 1/2; 0, 1 less 1/2.
        assert found.numbers[:, 0].tolist() == [-0.5, 0, 0.5, -0.5, 0.5]

    def test_is_empty_without_metadata(self):
        assert told_beside(heard(said(0, A), said(0, B)), (A, B), order=False).is_silent()
        assert told_beside(heard(), (), order=True).is_silent()
        assert not told_beside(heard(said(0, A, examples=1)), (A,), order=False).is_silent()

    def test_selects_columns_by_name_and_fills_missing_ones_with_nan(self):
        view = heard(
            said(0, A, metrics={"loss": 1.0, "seconds": 4.0}),
            said(0, B, metrics={"loss": 3.0, "seconds": 2.0}),
        )
        found = told_beside(view, (A, B), order=False)
        chosen = found.named(("seconds", "heat"))
        assert chosen[:, 0].tolist() == [1, -1]
        assert not bool(chosen[:, 1].isfinite().any())
        assert found.named(()).shape == (2, 0)

    def test_finds_the_rows_of_each_sender(self):
        found = told_beside(heard(said(0, A), said(0, B), said(1, A)), (A, B), order=False)
        rows = {
            sender: sender_rows.tolist() for sender, sender_rows in found.rows((B, A)).items()
        }
        assert rows == {B: [1], A: [0, 2]}

    def test_refuses_rows_of_an_unknown_sender(self):
        found = told_beside(heard(said(0, A)), (A,), order=False)
        with pytest.raises(NeedsError, match="client/1"):
            found.rows((A, B))


class TestSubtractRoundMeans:
    def test_a_single_value_in_a_round_becomes_nan(self):
        numbers = torch.tensor([[1.0, 2.0], [3.0, nan], [5.0, 7.0]])
        left = less_mean(numbers, torch.tensor([0, 0, 1]))
        assert left[:, 0].tolist()[:2] == [-1, 1]
        assert not bool(left[2].isfinite().any() | left[:2, 1].isfinite().any())
