import math

import pytest

from overheard.core.errors import NeedsError
from overheard.core.knowledge import Prior
from overheard.core.messages import Aggregate, Message
from overheard.core.parties import COHORT, SERVER
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.simulation.client_sizes import DEFAULT_SIZES, draw_size, size_range
from tests.simulation.small_run import CLIENTS, server_view

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
