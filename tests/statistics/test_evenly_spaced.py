import pytest

from overheard.statistics.evenly_spaced import select_evenly_spaced


def test_includes_the_first_and_the_last_or_only_the_last() -> None:
    assert select_evenly_spaced(range(20), 5) == (0, 4, 9, 14, 19)
    assert select_evenly_spaced((2, 3, 7, 9), 2) == (2, 9)
    assert select_evenly_spaced((2, 3, 7, 9), 1) == (9,)


def test_refuses_zero_rounds() -> None:
    with pytest.raises(ValueError, match="1 or more"):
        select_evenly_spaced(range(3), 0)
