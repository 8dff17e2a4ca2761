"""Checks of every split in the package."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.seeds import Seed
from overheard.core.split import Split
from overheard.plans.registries import SPLITS
from overheard.testing.require import require_part
from overheard.testing.split import (
    SPLIT_CHECKS,
    SplitFactory,
    assigns_the_sizes_without_overlap,
    check_split,
)


def make_split(name: str) -> SplitFactory:
    """Return a split with default settings; `shares` has none and gets a row per client."""

    def split_of(clients: int) -> Split:
        if name == "shares":
            return SPLITS.plugins()[name](compositions=((0.4, 0.3, 0.2, 0.1),) * clients)
        return SPLITS.plugins()[name]()

    return split_of


@pytest.mark.parametrize("name", SPLITS.plugins())
@given(sizes=st.lists(st.integers(4, 40), min_size=1, max_size=8), seed=st.integers(0, 999))
def test_each_client_gets_its_size_and_no_row_is_held_twice(
    name: str, sizes: list[int], seed: int
) -> None:
    assigns_the_sizes_without_overlap(make_split(name), sizes, Seed(seed))


@pytest.mark.parametrize("name", SPLITS.plugins())
@pytest.mark.parametrize("check", SPLIT_CHECKS)
def test_every_split(name: str, check: Callable[[SplitFactory], None]) -> None:
    require_part(make_split(name)(2))
    check(make_split(name))


def test_the_check_of_a_whole_split_passes() -> None:
    check_split(SPLITS.plugins()["iid"]())
