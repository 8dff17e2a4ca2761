"""What algorithms have in common."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from overheard.algorithms.adaptive import FedAdam
from overheard.algorithms.fed_avg import FedAvg
from overheard.algorithms.fed_avg_m import FedAvgM
from overheard.core.algorithm.algorithm import Algorithm, mean_factors
from overheard.core.algorithm.control_variates import (
    add_change,
    corrected_history,
    without_correction,
)
from overheard.core.algorithm.deduced_view import UNKNOWN_ALGORITHM, deduce_means
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import COHORT, SERVER, Party, client
from overheard.core.transcript import Transcript
from overheard.core.view import View
from tests.algorithms.by_hand import received


def test_hidden_or_zero_sizes_count_alike() -> None:
    assert mean_factors(received(1.0, 1.0, sizes=(None, 3)), "examples") == (0.5, 0.5)
    assert mean_factors(received(1.0, 1.0, sizes=(0, 0)), "examples") == (0.5, 0.5)
    assert mean_factors(received(1.0, 1.0, sizes=(0, 2)), "examples") == (0.0, 1.0)


def test_copies_multiply_the_weight() -> None:
    one, other = received(1.0, 1.0, sizes=(1, 3))
    assert mean_factors((replace(one, copies=3), other), "examples") == (0.5, 0.5)
    assert mean_factors((replace(one, copies=3), other), "equal") == (0.75, 0.25)


def test_the_mean_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no updates"):
        mean_factors((), "equal")


ONES = {"w": torch.ones(2)}


TWOS = {"w": torch.full((2,), 2.0)}


def view_with_control(observer: Party, *, is_sent: bool = True, first: int = 0) -> View:
    """Two rounds with a broadcast and an update of client 0."""
    control = ONES if is_sent else None
    rounds = range(first, first + 2)
    sent = [Message(n, SERVER, frozenset(), Broadcast(TWOS, control=control)) for n in rounds]
    sent += [Message(n, client(0), frozenset(), Update(TWOS, control=control)) for n in rounds]
    return View(frozenset({observer}), tuple(sent))


def test_there_is_no_history_without_variates_or_first_round_or_updates_of_others() -> None:
    assert not corrected_history(view_with_control(SERVER, is_sent=False))
    assert not corrected_history(view_with_control(SERVER, first=1))
    assert not corrected_history(view_with_control(client(0)))


def test_changes_add_up_and_corrections_are_taken_out() -> None:
    assert add_change(None, ONES) is ONES
    assert add_change(ONES, TWOS)["w"].tolist() == [3.0, 3.0]
    # delta = -K r (g + 2) with K r = 0.5 and g = 1.
    delta = {"w": torch.full((2,), -1.5)}
    assert without_correction(delta, TWOS, 0.5)["w"].tolist() == [-0.5, -0.5]


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
