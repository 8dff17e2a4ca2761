"""Costs of an arm: bytes sent, and time."""

from collections.abc import Iterable
from dataclasses import dataclass

from overheard.findings.threat_results import ArmResult


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of an arm, as means over its runs; None = not measured.

    Args:
        up: bytes sent by all clients.
        up_per_client_round: bytes sent by a client in a round.
        down: bytes sent by the server to all clients.
        down_per_client_round: bytes received by a client in a round.
        wall_seconds: wall-clock seconds of the training.
        core_seconds: core-seconds of the training.

    """

    up: float | None
    up_per_client_round: float | None
    down: float | None
    down_per_client_round: float | None
    wall_seconds: float | None
    core_seconds: float | None

    @property
    def total_bytes(self) -> float | None:
        """Bytes sent in a run, up and down."""
        return None if self.up is None or self.down is None else self.up + self.down


def arm_costs(arm: ArmResult) -> Costs:
    """Compute an arm's costs."""
    traffics = [run.traffic for run in arm.runs if run.traffic is not None]
    seconds = [run.seconds for run in arm.runs if run.seconds is not None]
    return Costs(
        _mean(measured.up for measured in traffics),
        _mean(measured.up_per_client_round for measured in traffics),
        _mean(measured.down for measured in traffics),
        _mean(measured.down_per_client_round for measured in traffics),
        _mean(measured.wall for measured in seconds),
        _mean(measured.cores for measured in seconds),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    measured = [value for value in values if value is not None]
    return sum(measured) / len(measured) if measured else None
