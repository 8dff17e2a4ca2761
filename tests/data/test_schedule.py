import pytest

from overheard.core.errors import PlanError
from overheard.data.schedule import Schedule, Shift


def test_refreshes_come_every_so_many_rounds_and_not_in_the_first() -> None:
    schedule = Schedule(rounds=7, refresh_every=3)
    assert [n for n in range(7) if schedule.refreshes(n)] == [3, 6]


def test_without_an_interval_nothing_is_refreshed() -> None:
    assert not any(Schedule(rounds=5).refreshes(n) for n in range(5))


@pytest.mark.parametrize(
    ("rounds", "every", "shifts", "said"),
    [
        (0, None, (), "1 round or more"),
        (3, 0, (), "refresh_every"),
        (3, None, (Shift(0, 3, (1.0, 0.0)),), "shifts in round 3"),
        (3, None, (Shift(0, 1), Shift(0, 1, (1.0, 0.0))), "once a round"),
    ],
)
def test_impossible_schedules_are_refused(
    rounds: int, every: int | None, shifts: tuple[Shift, ...], said: str
) -> None:
    with pytest.raises(PlanError, match=said):
        Schedule(rounds, every, shifts)


@pytest.mark.parametrize(
    ("client", "number", "shares"), [(-1, 1, (1.0,)), (0, 0, (1.0,)), (0, 1, (0.5, 0.2))]
)
def test_impossible_shifts_are_refused(
    client: int, number: int, shares: tuple[float, ...]
) -> None:
    with pytest.raises(PlanError):
        Shift(client, number, shares)
