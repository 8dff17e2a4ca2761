"""Outputs that are stored in memory while the messages live that they came from."""

import numpy as np
import pytest
import torch

from overheard.core import compute_settings
from overheard.core.compute_settings import OutputCache

ONES = np.ones((2, 2))


class Weights(dict[str, torch.Tensor]):
    """Weights to which weak references are possible."""


def test_outputs_are_those_of_this_update_to_this_broadcast() -> None:
    cache, start, delta = OutputCache(), Weights(), Weights()
    cache.save(("model",), start, delta, ONES)
    assert cache.load(("model",), start, delta) is ONES
    # Equal weights are other messages.
    assert cache.load(("model",), start, Weights()) is None
    assert cache.load(("model",), Weights(), delta) is None


def test_outputs_of_another_basis_are_dropped() -> None:
    cache, start, delta = OutputCache(), Weights(), Weights()
    first, second = [1], [1]  # equal, but not the same
    cache.save((first,), start, delta, ONES)
    assert cache.load((second,), start, delta) is None
    cache.save((second,), start, start, ONES)
    assert cache.load((first,), start, delta) is None
    assert cache.load((second,), start, delta) is None


def test_a_message_that_is_gone_is_not_taken_for_another() -> None:
    cache, start = OutputCache(), Weights()
    for _ in range(100):  # memory is used again, and so are the numbers of objects
        delta = Weights()
        assert cache.load((), start, delta) is None
        cache.save((), start, delta, ONES)
        del delta


def test_the_oldest_outputs_leave_the_limited_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compute_settings, "CACHED_BYTES", 3 * (ONES.nbytes + 512))
    cache, start, deltas = OutputCache(), Weights(), [Weights() for _ in range(5)]
    for delta in deltas:
        cache.save((), start, delta, ONES)
    kept = [cache.load((), start, delta) is ONES for delta in deltas]
    assert kept == [False] * 2 + [True] * 3


def test_nothing_is_sent_to_other_processes() -> None:
    cache, start = OutputCache(), Weights()
    cache.save((), start, start, ONES)
    build, arguments = cache.__reduce__()
    assert build(*arguments).load((), start, start) is None
