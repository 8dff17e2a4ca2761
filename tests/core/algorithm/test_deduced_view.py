"""Clients compute the mean update only where the algorithm lets them."""

from collections.abc import Sequence

import pytest
import torch

from overheard.algorithms.adaptive import FedAdam
from overheard.algorithms.fed_avg import FedAvg
from overheard.algorithms.fed_avg_m import FedAvgM
from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.algorithm.deduced_view import UNKNOWN_ALGORITHM, deduce_means
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.transcript import Transcript
from overheard.core.view import View

CLIENTS = frozenset(map(client, range(3)))

MODELS = [0.0, 1.0, 2.5, 2.5, 3.0]
"""The global model at the start of each round; nobody replied in round 2."""


def view(models: Sequence[float | None] = MODELS, observer: str = "client/0") -> View:
    """What an observer reads of a run with these models; None = it missed the broadcast."""
    messages = [
        Message(number, SERVER, CLIENTS, Broadcast({"w": torch.tensor([float(model)])}))
        for number, model in enumerate(models)
        if model is not None
    ]
    update = Update({"w": torch.tensor([5.0])}, 4)
    messages.insert(1, Message(0, client(1), frozenset({SERVER}), update))
    return Transcript(tuple(messages)).seen_by(observer)  # type: ignore[arg-type]


def means(algorithm: Algorithm, given: View, *, is_known: bool = True) -> dict[int, float]:
    """The mean update of each round that the observer computes."""
    told = deduce_means(given, algorithm, is_known=is_known).updates(COHORT)
    return {number: float(update.delta["w"]) for number, update in told.items()}


def test_a_server_rate_is_divided_out() -> None:
    assert means(FedAvg(rate=0.5), view()) == {0: 2.0, 1: 3.0, 3: 1.0}


def test_momentum_is_subtracted_and_survives_a_round_without_updates() -> None:
    # v = 1, then 1.5 = 0.5 * 1 + 1, then 0.5 = 0.5 * 1.5 - 0.25.
    assert means(FedAvgM(momentum=0.5), view()) == {0: 1.0, 1: 1.0, 3: -0.25}


def test_a_missed_broadcast_leaves_out_the_rounds_that_need_it() -> None:
    # Round 3 starts after the gap: its momentum is unknown. Round 4 is computed again.
    given = view([0.0, 1.0, None, 2.0, 3.0, 4.5])
    assert means(FedAvgM(momentum=0.5), given) == {0: 1.0, 4: 1.0}


def test_one_round_alone_has_its_mean_update() -> None:
    told = deduce_means(view(), FedAvgM(momentum=0.5), is_known=True).during((1,))
    assert {n: float(u.delta["w"]) for n, u in told.updates(COHORT).items()} == {1: 1.0}


@pytest.mark.parametrize(
    ("algorithm", "is_known", "why"),
    [
        (FedAdam(), True, FedAdam.hidden_mean),
        (FedAvgM(), False, UNKNOWN_ALGORITHM),
        (FedAvg(rate=2.0), False, UNKNOWN_ALGORITHM),
    ],
)
def test_a_change_of_the_model_is_never_taken_for_the_mean(
    algorithm: Algorithm, is_known: bool, why: str
) -> None:
    told = deduce_means(view(), algorithm, is_known=is_known)
    assert told.updates(COHORT) == {}
    assert told.cohort_sizes() == {}
    assert told.hidden_mean == why
