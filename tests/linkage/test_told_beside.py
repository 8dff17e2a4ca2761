"""Numbers told in clear."""

from math import log, log1p, nan

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.parties import SERVER, client, shadow
from overheard.linkage.told_beside import PLACE, crowd_of, less_mean, told_beside
from tests.worlds.planted_crowd import heard, said

A, B, C = (client(number) for number in range(3))


class TestCrowdOf:
    def test_is_everyone_heard_but_observers_and_those_left_out(self):
        view = heard(said(0, A), said(0, shadow(0)), said(1, SERVER), said(1, B), said(1, A))
        assert crowd_of(view, {shadow(0)}) == (A, B)


class TestToldBeside:
    def test_reads_sizes_as_logarithms_and_metrics_less_the_mean_of_their_round(self):
        view = heard(
            said(0, A, examples=1, metrics={"loss": 1.0}),
            said(0, B, examples=3, metrics={"loss": 2.0}),
            said(1, A, examples=1, metrics={"loss": 0.5}),
            said(1, B, examples=3, metrics={"loss": 0.7}),
        )
        told = told_beside(view, (A, B), order=False)
        assert told.names == ("loss",)
        assert told.sizes.tolist() == pytest.approx([log(2), log(4), log(2), log(4)])
        assert told.numbers[:, 0].tolist() == pytest.approx([-0.5, 0.5, -0.1, 0.1])
        assert (told.senders, told.rounds.tolist()) == ((A, B, A, B), [0, 0, 1, 1])

    def test_reads_no_weight(self):
        class Unreadable(dict):
            def __getitem__(self, name):
                raise AssertionError(name)

        message = said(0, A, examples=2)
        object.__setattr__(message.body, "delta", Unreadable(a=torch.zeros(1)))
        assert told_beside(heard(message), (A,), order=True).sizes.tolist() == [log1p(2)]

    def test_one_outside_the_crowd_moves_no_mean(self):
        ours = (said(0, A, metrics={"loss": 1.0}), said(0, B, metrics={"loss": 3.0}))
        told = told_beside(
            heard(*ours, said(0, shadow(0), metrics={"loss": 90.0})), (A, B), order=False
        )
        assert told.numbers[:, 0].tolist() == [-1, 1]

    def test_what_is_not_told_is_no_number(self):
        view = heard(
            said(0, A, examples=5, metrics={"loss": 1.0, "seconds": float("inf")}),
            said(0, B, metrics={"loss": 3.0}),
            said(0, C),
        )
        told = told_beside(view, (A, B, C), order=False)
        assert told.names == ("loss", "seconds")
        assert told.sizes.isfinite().tolist() == [True, False, False]
        assert told.numbers[:, 0].tolist()[:2] == [-1, 1]
        assert told.numbers.isfinite().tolist() == [[True, False], [True, False], [False] * 2]

    def test_places_run_from_the_first_reply_of_a_round_to_the_last(self):
        view = heard(said(0, B), said(0, C), said(0, A), said(1, A), said(1, B))
        told = told_beside(view, (A, B, C), order=True)
        assert told.names == (PLACE,)
        # 0, 1/2, 1 less 1/2; 0, 1 less 1/2.
        assert told.numbers[:, 0].tolist() == [-0.5, 0, 0.5, -0.5, 0.5]

    def test_is_silent_where_nothing_is_told(self):
        assert told_beside(heard(said(0, A), said(0, B)), (A, B), order=False).is_silent()
        assert told_beside(heard(), (), order=True).is_silent()
        assert not told_beside(heard(said(0, A, examples=1)), (A,), order=False).is_silent()

    def test_gives_numbers_by_name_and_none_for_one_that_nobody_tells(self):
        view = heard(
            said(0, A, metrics={"loss": 1.0, "seconds": 4.0}),
            said(0, B, metrics={"loss": 3.0, "seconds": 2.0}),
        )
        told = told_beside(view, (A, B), order=False)
        chosen = told.named(("seconds", "heat"))
        assert chosen[:, 0].tolist() == [1, -1]
        assert not bool(chosen[:, 1].isfinite().any())
        assert told.named(()).shape == (2, 0)

    def test_finds_the_rows_of_each_sender(self):
        told = told_beside(heard(said(0, A), said(0, B), said(1, A)), (A, B), order=False)
        rows = {who: own.tolist() for who, own in told.rows((B, A)).items()}
        assert rows == {B: [1], A: [0, 2]}

    def test_refuses_to_find_rows_of_one_who_was_not_read(self):
        told = told_beside(heard(said(0, A)), (A,), order=False)
        with pytest.raises(NeedsError, match="client/1"):
            told.rows((A, B))


class TestLessMean:
    def test_one_who_alone_tells_a_number_has_nothing_to_be_compared_with(self):
        numbers = torch.tensor([[1.0, 2.0], [3.0, nan], [5.0, 7.0]])
        left = less_mean(numbers, torch.tensor([0, 0, 1]))
        assert left[:, 0].tolist()[:2] == [-1, 1]
        assert not bool(left[2].isfinite().any() | left[:2, 1].isfinite().any())
