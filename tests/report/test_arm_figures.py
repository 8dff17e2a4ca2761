"""Figures compare all arms, in all and by round, and tables their costs."""

from dataclasses import replace
from html import escape

import pytest

from overheard.archive.run_time import RunTime
from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import SERVER, client
from overheard.findings.audit import Audit
from overheard.findings.costs import arm_costs
from overheard.findings.finding import Cell, Refusal
from overheard.findings.traffic import Traffic
from overheard.report.arm_figures import arm_figures
from overheard.report.page import cost_table
from overheard.report.round_figures import accuracy_figure, round_figures
from tests.runs.audits import HOSTILE, shares_finding


def test_a_row_has_result_guess_and_gain(small: Audit) -> None:
    (report_figure,) = arm_figures(small.arm_results)
    cells = [cell.replace("\u00a0", " ") for cell in report_figure.table.rows[1]]
    # With noise: the guess itself, 50 % and 30 %, mean 40 %; told the support: 0 and 30 %.
    # The interval is Student's for two clients: 12.7 standard errors of 10
    # points, cut at 0 and 100 %.
    assert cells == [
        "noise", "decaf", "40 %", "0 to 100 %", "40 %", "15 %", "0 %", "0 to 0 %",
    ]  # fmt: skip


def test_an_unmeasured_arm_has_a_row(small: Audit) -> None:
    cell = Cell("noise", 0, (SERVER,), "decaf", "Decaf()", "label_shares", (0, 1))
    refused = replace(
        small, findings=small.findings[:2], refusals=(Refusal(cell, client(0), ("updates",)),)
    )
    (report_figure,) = arm_figures(with_verdicts(refused).arm_results)
    assert report_figure.table.rows[1][:3] == ("noise", "not measured", "–")
    assert "noise: not measured" in report_figure.panels[0].drawing


def test_long_names_are_drawn_in_full(small: Audit) -> None:
    name = "reidentify_mlp(updates='shadow', layer='last_bias')"
    findings = tuple(
        replace(one, cell=replace(one.cell, attack=name)) for one in small.findings
    )
    (report_figure,) = arm_figures(with_verdicts(replace(small, findings=findings)).arm_results)
    assert escape(name, quote=False) in report_figure.panels[0].drawing


TRUE = (1.0, 0.0)


def test_lists_single_rounds_and_all_rounds(small: Audit) -> None:
    findings = (
        shares_finding("none", client(0), TRUE, (0.9, 0.1)),
        shares_finding("none", client(0), TRUE, (0.8, 0.2), rounds=(1,)),
        shares_finding("none", client(0), TRUE, (0.7, 0.3), rounds=(0,)),
    )
    (report_figure,) = round_figures(
        with_verdicts(replace(small, findings=findings)).arm_results
    )
    told = [(line[2], line[3].replace("\u00a0", " ")) for line in report_figure.table.rows]
    # Half of l1 is what is misplaced.
    assert told == [("0", "30 %"), ("1", "20 %"), ("all 2", "10 %")]


def test_without_single_rounds_there_is_no_figure(small: Audit) -> None:
    assert round_figures(small.arm_results) == ()


def test_shows_accuracy_by_round_of_measured_arms(small: Audit) -> None:
    report_figure = accuracy_figure(small.arm_results)
    assert report_figure.table.headers == ("Round", "none", "noise")
    assert report_figure.table.rows[1] == ("1", "91.0\u00a0%", "89.0\u00a0%")
    untested = tuple(replace(run, accuracy={}) for run in small.arms)
    assert accuracy_figure(with_verdicts(replace(small, arms=untested)).arm_results) is None


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
