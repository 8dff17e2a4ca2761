"""The table of what each arm costs."""

from collections.abc import Sequence

from overheard.drawing.figures import ReportTable
from overheard.findings.costs import Costs, arm_costs
from overheard.findings.names import make_printable
from overheard.findings.number_format import (
    NO_NUMBER,
    format_bytes,
    format_duration,
    format_number,
    format_percent,
)
from overheard.findings.threat_results import ArmResult, find_undefended_arm

UNMEASURED = "not measured"


def cost_table(arm_results: Sequence[ArmResult]) -> ReportTable:
    """Return accuracy, bytes and time of each arm, as means over its runs."""
    bare = find_undefended_arm(arm_results)
    utility = arm_results[0].utility.capitalize() if arm_results else ""
    return ReportTable(
        "Cost of each arm, mean over runs",
        (
            "Arm",
            utility,
            f"{utility} lost, points",
            "Clients send",
            "Sent per client and round",
            "Server sends",
            "Received per client and round",
            "Time",
            "CPU time",
        ),
        tuple(
            (
                make_printable(arm.name),
                *_accuracy_cells(arm, bare),
                *_overhead_cells(arm_costs(arm)),
            )
            for arm in arm_results
        ),
        1,
    )


def _accuracy_cells(arm: ArmResult, bare: ArmResult | None) -> tuple[str, str]:
    if arm.accuracy is None:
        return (UNMEASURED, NO_NUMBER)
    if bare is None or bare.accuracy is None:
        return (format_percent(arm.accuracy), NO_NUMBER)
    return (format_percent(arm.accuracy), format_number(100 * (bare.accuracy - arm.accuracy)))


def _overhead_cells(costs: Costs) -> tuple[str, ...]:
    sizes = (costs.up, costs.up_per_client_round, costs.down, costs.down_per_client_round)
    times = (costs.wall_seconds, costs.core_seconds)
    return (
        *map(format_bytes, sizes),
        *(UNMEASURED if time is None else format_duration(time) for time in times),
    )
