"""What an arm costs: bytes that travel, and time."""

from collections.abc import Iterable
from dataclasses import dataclass

from overheard.findings.exposures import Arm


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
