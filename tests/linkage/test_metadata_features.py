"""Metadata of updates."""

from math import log, log1p, nan

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.parties import SERVER, client, shadow_device
from overheard.linkage.metadata_features import (
    ORDER_FEATURE,
    list_senders,
    read_metadata,
    subtract_round_means,
)
from tests.runs.planted_users import make_message, make_view

A, B, C = (client(number) for number in range(3))


class TestListSenders:
    def test_omits_observers_and_excluded_parties(self):
        view = make_view(
            make_message(0, A),
            make_message(0, shadow_device(0)),
            make_message(1, SERVER),
            make_message(1, B),
            make_message(1, A),
        )
        assert list_senders(view, {shadow_device(0)}) == (A, B)


class TestReadMetadata:
    def test_reads_log_sizes_and_centred_metrics(self):
        view = make_view(
            make_message(0, A, examples=1, metrics={"loss": 1.0}),
            make_message(0, B, examples=3, metrics={"loss": 2.0}),
            make_message(1, A, examples=1, metrics={"loss": 0.5}),
            make_message(1, B, examples=3, metrics={"loss": 0.7}),
        )
        found = read_metadata(view, (A, B), with_order=False)
        assert found.names == ("loss",)
        assert found.log_sizes.tolist() == pytest.approx([log(2), log(4), log(2), log(4)])
        assert found.values[:, 0].tolist() == pytest.approx([-0.5, 0.5, -0.1, 0.1])
        assert (found.senders, found.rounds.tolist()) == ((A, B, A, B), [0, 0, 1, 1])

    def test_reads_no_weight(self):
        class Unreadable(dict):
            def __getitem__(self, name):
                raise AssertionError(name)

        message = make_message(0, A, examples=2)
        object.__setattr__(message.body, "delta", Unreadable(a=torch.zeros(1)))
        assert read_metadata(make_view(message), (A,), with_order=True).log_sizes.tolist() == [
            log1p(2)
        ]

    def test_other_senders_do_not_change_the_mean(self):
        messages = (
            make_message(0, A, metrics={"loss": 1.0}),
            make_message(0, B, metrics={"loss": 3.0}),
        )
        found = read_metadata(
            make_view(*messages, make_message(0, shadow_device(0), metrics={"loss": 90.0})),
            (A, B),
            with_order=False,
        )
        assert found.values[:, 0].tolist() == [-1, 1]

    def test_missing_values_are_nan(self):
        view = make_view(
            make_message(0, A, examples=5, metrics={"loss": 1.0, "seconds": float("inf")}),
            make_message(0, B, metrics={"loss": 3.0}),
            make_message(0, C),
        )
        found = read_metadata(view, (A, B, C), with_order=False)
        assert found.names == ("loss", "seconds")
        assert found.log_sizes.isfinite().tolist() == [True, False, False]
        assert found.values[:, 0].tolist()[:2] == [-1, 1]
        assert found.values.isfinite().tolist() == [[True, False], [True, False], [False] * 2]

    def test_orders_replies_from_0_to_1_in_each_round(self):
        view = make_view(
            make_message(0, B),
            make_message(0, C),
            make_message(0, A),
            make_message(1, A),
            make_message(1, B),
        )
        found = read_metadata(view, (A, B, C), with_order=True)
        assert found.names == (ORDER_FEATURE,)
        # 0, 1/2, 1 less 1/2; 0, 1 less 1/2.
        assert found.values[:, 0].tolist() == [-0.5, 0, 0.5, -0.5, 0.5]

    def test_refuses_rows_of_an_unknown_sender(self):
        found = read_metadata(make_view(make_message(0, A)), (A,), with_order=False)
        with pytest.raises(NeedsError, match="client/1"):
            found.rows_by_sender((A, B))


class TestSubtractRoundMeans:
    def test_a_single_value_in_a_round_becomes_nan(self):
        numbers = torch.tensor([[1.0, 2.0], [3.0, nan], [5.0, 7.0]])
        left = subtract_round_means(numbers, torch.tensor([0, 0, 1]))
        assert left[:, 0].tolist()[:2] == [-1, 1]
        assert not bool(left[2].isfinite().any() | left[:2, 1].isfinite().any())
