"""The mean of all clients that lies among their replies."""

from collections.abc import Mapping
from dataclasses import replace

import torch

from overheard.algorithms.fed_avg_m import FedAvgM
from overheard.consistency.evidence import ClientReplies
from overheard.consistency.mean_replies import find_mean_replies
from overheard.core.parties import Party, client
from tests.consistency.runs import Model, Setting, TrueRun, check, record, simulate

MEAN = Party("client/mean")


def with_mean(run: TrueRun) -> TrueRun:
    """Return the run in which the next model lies among the clients' in every round."""
    weights: list[Mapping[Party, Model]] = [
        {**one, MEAN: run.models[number + 1]} for number, one in enumerate(run.weights)
    ]
    return replace(run, weights=weights, examples={**run.examples, MEAN: 100})


def test_the_mean_among_the_replies_is_refused() -> None:
    proof = check(record(with_mean(simulate())))
    assert proof.outcome == "contradicts"
    (fault,) = [one for one in proof.faults if one.is_refusal]
    assert fault.sender == MEAN
    assert "leave the file of the mean out" in proof.mend


def test_a_reply_that_is_the_change_of_the_model_is_a_warning() -> None:
    # Under momentum the new model is no mean of the replies.
    proof = check(record(with_mean(simulate(Setting(FedAvgM(rate=1.0, momentum=0.5))))))
    (fault,) = [one for one in proof.faults if "the change of the model itself" in one.fault]
    assert (fault.sender, fault.is_refusal) == (MEAN, False)


def test_ordinary_replies_are_no_mean() -> None:
    assert check(record(simulate())).faults == ()


def test_two_clients_are_no_mean_of_each_other() -> None:
    run = simulate()
    two = {client(0), client(1)}
    weights = [{name: one[name] for name in one if name in two} for one in run.weights]
    proof = check(record(replace(run, weights=weights)))
    assert not [one for one in proof.faults if "the mean of all others" in one.fault]


def faulty(deltas: list[list[float]], shares: list[float]) -> list[Party]:
    """Return the senders whose replies, the same in two rounds, are a mean of the others."""
    numbers = torch.tensor(deltas)
    zero = torch.zeros(numbers.shape[1])
    senders = tuple(map(client, range(len(deltas))))
    one = ClientReplies(senders, tuple(shares), numbers, zero, {"c0": zero})
    return [fault.sender for fault in find_mean_replies([(0, one, 1.0), (1, one, 1.0)])]


def test_finds_a_mean_by_examples_and_a_plain_one_but_not_among_equal_replies() -> None:
    # The third is (3 a + b) / 4, the fourth of the next (a + b + c) / 3.
    assert faulty([[4, 0], [0, 8], [3, 2]], [0.6, 0.2, 0.2]) == [client(2)]
    assert faulty([[3, 0], [0, 3], [3, 3], [2, 2]], [0.25, 0.5, 0.1, 0.15]) == [client(3)]
    assert faulty([[1, 2], [1, 2], [1, 2]], [0.5, 0.3, 0.2]) == []
    # What is left has no examples, so that its mean by examples is not known.
    assert faulty([[4, 0], [0, 8], [3, 2]], [0.0, 0.0, 1.0]) == []
