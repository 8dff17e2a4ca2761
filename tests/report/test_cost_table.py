"""Costs are means over runs, and unmeasured costs are not zero."""

from dataclasses import replace

import pytest

from overheard.archive.run_time import RunTime
from overheard.auditing.threat_results import with_verdicts
from overheard.findings.audit import Audit
from overheard.findings.costs import arm_costs
from overheard.findings.traffic import Traffic
from overheard.report.page import cost_table
from tests.runs.audits import HOSTILE


def test_bytes_and_seconds_are_means_over_runs_without_the_controls(small: Audit) -> None:
    one, other = small.arms
    runs = (
        replace(one, traffic=Traffic(100, 300, 4, 6), seconds=RunTime(1.0, 0.5)),
        replace(one, seed=1, traffic=Traffic(200, 330, 5, 6), seconds=RunTime(2.0, 1.5)),
        replace(one, traffic=Traffic(9999, 9999, 1, 1), is_control=True),
        other,
    )
    bare, noise = map(arm_costs, with_verdicts(replace(small, arms=runs)).arm_results)
    assert (bare.up, bare.down, bare.total_bytes) == (150, 315, 465)
    # 100 / 4 and 200 / 5; 300 / 6 and 330 / 6.
    assert (bare.up_per_client_round, bare.down_per_client_round) == (32.5, 52.5)
    assert (bare.wall_seconds, bare.core_seconds) == (1.5, 1.0)
    assert noise.up is noise.total_bytes is noise.wall_seconds is noise.core_seconds is None


def test_unmeasured_runs_are_excluded_from_the_mean(small: Audit) -> None:
    one, _ = small.arms
    runs = (one, replace(one, seed=1, seconds=RunTime(3.0, None)))
    (costs,) = map(arm_costs, with_verdicts(replace(small, arms=runs, findings=())).arm_results)
    assert (costs.wall_seconds, costs.core_seconds) == (3.0, None)


def test_the_table_has_one_row_per_arm_with_readable_units(small: Audit) -> None:
    one, other = small.arms
    runs = (
        replace(one, traffic=Traffic(3 * 2**20, 6 * 2**20, 4, 6), seconds=RunTime(90.0, 45.0)),
        replace(other, arm=f"{HOSTILE}\x1b"),
    )
    table = cost_table(with_verdicts(replace(small, arms=runs)).arm_results)
    lines = [[cell.replace("\u00a0", " ") for cell in line] for line in table.rows]
    assert lines[0] == [
        "none", "91.0 %", "0", "3.0 MiB", "768 KiB", "6.0 MiB", "1.0 MiB", "1.5 min", "45 s",
    ]  # fmt: skip
    # 91 - 89 points; nothing else was measured.
    dashes = ["–"] * 4
    assert lines[1] == [
        f"{HOSTILE}\\x1b", "89.0 %", "2.0", *dashes, "not measured", "not measured",
    ]  # fmt: skip


@pytest.mark.parametrize("bare", [True, False])
def test_accuracy_loss_is_relative_to_the_undefended_arm(small: Audit, bare: bool) -> None:
    held = small.arms if bare else small.arms[1:]
    *_, noise = cost_table(with_verdicts(replace(small, arms=held)).arm_results).rows
    assert noise[2] == ("2.0" if bare else "–")
