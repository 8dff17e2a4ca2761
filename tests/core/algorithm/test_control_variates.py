"""What observers read of control variates."""

import torch

from overheard.core.algorithm.control_variates import (
    add_change,
    corrected_history,
    without_correction,
)
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import SERVER, Party, client
from overheard.core.view import View

ONES = {"w": torch.ones(2)}
TWOS = {"w": torch.full((2,), 2.0)}


def view(observer: Party, *, is_sent: bool = True, first: int = 0) -> View:
    """Two rounds with a broadcast and an update of client 0."""
    control = ONES if is_sent else None
    rounds = range(first, first + 2)
    sent = [Message(n, SERVER, frozenset(), Broadcast(TWOS, control=control)) for n in rounds]
    sent += [Message(n, client(0), frozenset(), Update(TWOS, control=control)) for n in rounds]
    return View(frozenset({observer}), tuple(sent))


def test_there_is_no_history_without_variates_or_first_round_or_updates_of_others() -> None:
    assert not corrected_history(view(SERVER, is_sent=False))
    assert not corrected_history(view(SERVER, first=1))
    assert not corrected_history(view(client(0)))


def test_changes_add_up_and_corrections_are_taken_out() -> None:
    assert add_change(None, ONES) is ONES
    assert add_change(ONES, TWOS)["w"].tolist() == [3.0, 3.0]
    # delta = -K r (g + 2) with K r = 0.5 and g = 1.
    delta = {"w": torch.full((2,), -1.5)}
    assert without_correction(delta, TWOS, 0.5)["w"].tolist() == [-0.5, -0.5]
