"""The table of what each arm costs."""

from collections.abc import Sequence

from overheard.drawing.plates import Table
from overheard.findings.costs import Costs, costs_of
from overheard.findings.exposures import Arm, bare_arm
from overheard.findings.figures import NO_FIGURE, data_size, digits, duration, percent
from overheard.findings.names import shown

UNMEASURED = "not measured"


def costs_table(every: Sequence[Arm]) -> Table:
    """Return accuracy, bytes and time of each arm, as means over its runs."""
    bare = bare_arm(every)
    return Table(
        "Cost of each arm, mean over runs",
        (
            "Arm",
            "Accuracy",
            "Accuracy lost, points",
            "Clients send",
            "Sent per client and round",
            "Server sends",
            "Received per client and round",
            "Time",
            "CPU time",
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
