import pytest

from overheard.statistics.spread import spread


def test_the_first_and_the_last_are_among_them() -> None:
    assert spread(range(20), 5) == (0, 4, 9, 14, 19)
    assert spread((2, 3, 7, 9), 2) == (2, 9)


def test_of_one_it_is_the_last() -> None:
    assert spread((2, 3, 7, 9), 1) == (9,)


@pytest.mark.parametrize("rounds", [(), (4,), (4, 6, 7)])
def test_all_are_taken_where_there_are_no_more(rounds: tuple[int, ...]) -> None:
    assert spread(rounds, 3) == rounds


def test_none_is_no_choice() -> None:
    with pytest.raises(ValueError, match="1 round or more"):
        spread(range(3), 0)
