"""Curves pass through the figures that are told of them."""

import numpy as np
import pytest

from overheard.questions.identity.statistics.curves import identified_at, named_within
from overheard.questions.identity.statistics.ranking import rankings
from tests.auditing.recognised import found, run


def test_the_share_named_within_k_is_worked_by_hand() -> None:
    # b first; c and d share the places 3 and 4 behind a and b; the stranger counts for nothing.
    held = rankings([
        found((0, 1, 0, 0), "b", 0),
        found((2, 1, 0, 0), "c", 1),
        found((2, 1, 0, 0), "stranger", 2),
    ])  # fmt: skip
    assert named_within(held, (1, 2, 3, 4)) == pytest.approx([1 / 2, 1 / 2, 3 / 4, 1])


def test_known_users_are_identified_the_more_the_more_strangers_may_pass() -> None:
    rates = identified_at(rankings(run(2.0, strangers=5)), (0.0, 10.0, 50.0, 100.0))
    assert rates is not None
    assert (np.diff(rates) >= 0).all()
    assert rates[0] < rates[-1]
    assert rates[-1] == pytest.approx(named_within(rankings(run(2.0, strangers=5)), (1,))[0])


def test_without_strangers_nothing_is_said_of_them() -> None:
    assert identified_at(rankings(run(2.0)), (1.0,)) is None
