import pytest

from overheard.statistics.spread import spread


def test_includes_the_first_and_the_last() -> None:
    assert spread(range(20), 5) == (0, 4, 9, 14, 19)
    assert spread((2, 3, 7, 9), 2) == (2, 9)


def test_a_single_round_is_the_last() -> None:
    assert spread((2, 3, 7, 9), 1) == (9,)


@pytest.mark.parametrize("rounds", [(), (4,), (4, 6, 7)])
def test_returns_all_rounds_if_there_are_no_more(rounds: tuple[int, ...]) -> None:
    assert spread(rounds, 3) == rounds


def test_refuses_zero_rounds() -> None:
    with pytest.raises(ValueError, match="1 or more"):
        spread(range(3), 0)
