"""What an arm costs: accuracy, bytes that travel, and time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from overheard.drawing.plates import Table
from overheard.findings.exposures import Arm, bare_arm
from overheard.findings.figures import NO_FIGURE, data_size, digits, duration, percent
from overheard.findings.names import shown

UNMEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Costs:
    """What an arm costs, means over its runs; None = not measured.

    Args:
        up: bytes that all clients sent.
        up_each: bytes that a client sent in a round.
        down: bytes that the server sent to all clients.
        down_each: bytes that a client was sent in a round.
        wall: seconds of the training.
        cores: seconds of the training on all cores together.

    """

    up: float | None
    up_each: float | None
    down: float | None
    down_each: float | None
    wall: float | None
    cores: float | None

    @property
    def sent(self) -> float | None:
        """Bytes that travelled in a run, up and down."""
        return None if self.up is None or self.down is None else self.up + self.down


def costs_of(arm: Arm) -> Costs:
    """What this arm costs."""
    traffics = [run.traffic for run in arm.runs if run.traffic is not None]
    seconds = [run.seconds for run in arm.runs if run.seconds is not None]
    return Costs(
        _mean(one.up for one in traffics),
        _mean(one.up_each for one in traffics),
        _mean(one.down for one in traffics),
        _mean(one.down_each for one in traffics),
        _mean(one.wall for one in seconds),
        _mean(one.cores for one in seconds),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    measured = [value for value in values if value is not None]
    return sum(measured) / len(measured) if measured else None


def costs_table(every: Sequence[Arm]) -> Table:
    """Accuracy, bytes and time of each arm, means over its runs."""
    bare = bare_arm(every)
    return Table(
        "What each arm costs, mean over runs",
        (
            "Arm",
            "Accuracy",
            "Points lost",
            "Clients send",
            "A client in a round",
            "Server sends",
            "To a client in a round",
            "Time",
            "Time of cores",
        ),
        tuple((shown(arm.name), *_worth(arm, bare), *_spent(costs_of(arm))) for arm in every),
        1,
    )


def _worth(arm: Arm, bare: Arm | None) -> tuple[str, str]:
    if arm.accuracy is None:
        return (UNMEASURED, NO_FIGURE)
    if bare is None or bare.accuracy is None:
        return (percent(arm.accuracy), NO_FIGURE)
    return (percent(arm.accuracy), digits(100 * (bare.accuracy - arm.accuracy)))


def _spent(costs: Costs) -> tuple[str, ...]:
    sizes = (costs.up, costs.up_each, costs.down, costs.down_each)
    times = (costs.wall, costs.cores)
    return (
        *map(data_size, sizes),
        *(UNMEASURED if time is None else duration(time) for time in times),
    )
