"""Every figure on people stands in a table, chance and control beside."""

from overheard.auditing.exposures import arms
from overheard.core.seeds import Seed
from overheard.drawing.plates import Table
from overheard.findings.finding import Finding
from overheard.questions.identity.pages.identity_tables import identity_tables
from tests.report.people import (
    MLP,
    identity_findings,
    people_audit,
)


def tables(findings: list[Finding]) -> dict[str, Table]:
    held = identity_tables(arms(people_audit(findings, {"none": 0.8}), Seed(0)))
    assert all(len(line) == len(table.heads) for table in held for line in table.lines)
    return {table.caption.partition(" (")[0]: table for table in held}


def test_attacks_have_a_line_in_each_table_of_which_they_say_something() -> None:
    held = tables(
        [
            *identity_findings("none", "ours", 4.0),
            *identity_findings("none", "mlp", 1.5, part=MLP, says_unseen=False),
        ]
    )
    assert {title: [line[1] for line in table.lines] for title, table in held.items()} == {
        "Who it is": ["ours", "mlp"],
        "Pair matching": ["ours", "mlp"],
        "Users whom the attacker does not know": ["ours", "mlp"],
        "The control: examples dealt anew among all clients": ["ours", "mlp"],
        "Gain over the published attack, user by user": ["ours"],
    }
    (gain,) = held["Gain over the published attack, user by user"].lines
    assert gain[2] == "mlp"


def test_chance_stands_beside_as_a_random_order_and_as_one_in_the_users() -> None:
    table = tables(identity_findings("none", "ours", 4.0))["Who it is"]
    figures = dict(zip(table.heads, table.lines[0], strict=True))
    # 12 users with 8 targets of 120 each: 1 / 12, and a random order gets
    # (H + 7 (120 - H) / 119) / 120 with H = 5.3687: 0.101.
    assert figures["1 / users"] == "8.3\u00a0%"
    assert figures["Random order"] == "10\u00a0%"


def test_the_control_is_inside_the_null() -> None:
    held = tables(identity_findings("none", "ours", 4.0))
    (line,) = held["The control: examples dealt anew among all clients"].lines
    assert line[-1] == "inside"
    assert " to " in line[-2]


def test_a_figure_that_nobody_has_makes_no_column() -> None:
    table = tables(identity_findings("none", "ours", 4.0))["Pair matching"]
    # Nobody but links has the average precision of a target.
    assert "Average precision a target" not in table.heads
    bare = tables(identity_findings("none", "ours", 4.0, strangers=(), has_controls=False))
    table = bare["Users whom the attacker does not know"]
    assert "Unknown targets" not in table.heads
    assert table.heads[-1] == "Even odds"
