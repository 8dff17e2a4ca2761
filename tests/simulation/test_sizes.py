import math

from hypothesis import given
from hypothesis import strategies as st

from overheard.core.messages import Aggregate, Message
from overheard.core.parties import COHORT, SERVER
from overheard.core.prior import Prior
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.simulation.sizes import HIDDEN_SIZES, draw_size, size_range
from tests.simulation.world import CLIENTS, run

ANY = Prior()


def aggregated(examples: int | None) -> View:
    body = Aggregate({}, frozenset(CLIENTS), examples)
    return View(frozenset({SERVER}), (Message(0, COHORT, frozenset({SERVER}), body),))


def test_sizes_told_in_clear_bound_the_range() -> None:
    assert size_range(run(sizes=(20, 40, 30)), ANY) == (20, 40)


def test_those_who_hide_their_size_may_be_smaller_or_larger_than_those_who_tell() -> None:
    # 30 / 2 and 30 * 2.
    assert size_range(run(sizes=(None, 30, None)), ANY) == (15, 60)


def test_what_the_prior_says_comes_before_what_is_told() -> None:
    assert size_range(run(), Prior(sizes=(5, 6))) == (5, 6)


def test_what_an_observer_knows_of_itself_says_nothing_of_the_others() -> None:
    heard = run(sizes=(20, 40, 30)).messages
    own = [message for message in heard if message.sender in (SERVER, CLIENTS[0])]
    assert size_range(View(frozenset({CLIENTS[0]}), own), ANY) == HIDDEN_SIZES


def test_where_no_size_is_told_all_that_is_plausible_is_taken() -> None:
    assert size_range(run(sizes=(None, None, None)), ANY) == HIDDEN_SIZES
    assert size_range(aggregated(None), ANY) == HIDDEN_SIZES


def test_the_total_of_a_cohort_tells_of_its_mean() -> None:
    # 300 examples of three clients: 100 each, so 50 to 200.
    assert size_range(aggregated(300), ANY) == (50, 200)


@given(low=st.integers(1, 100), more=st.integers(0, 5000), seed=st.integers(0, 10**6))
def test_sizes_drawn_lie_in_the_range(low: int, more: int, seed: int) -> None:
    assert low <= draw_size((low, low + more), Seed(seed)) <= low + more


def test_small_scales_are_as_likely_as_large_ones() -> None:
    # Of a log-uniform range from 10 to 1,000 half lies below 100: 500 +- 16 of 1,000.
    drawn = [draw_size((10, 1000), Seed(0).child(n)) for n in range(1000)]
    assert math.isclose(sum(size < 100 for size in drawn), 500, abs_tol=64)
