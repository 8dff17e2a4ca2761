"""What is said of defenses rests on intervals that do not overlap."""

from dataclasses import replace

from overheard.archive.seconds import Seconds
from overheard.auditing.exposures import arms
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.findings.finding import Audit, Cell, Refusal
from overheard.findings.traffic import Traffic
from overheard.report.changes import changes
from tests.worlds.audits import shares_finding

TRUE = (1.0, 0.0)


def test_a_defense_helps_where_the_intervals_part_and_its_cost_is_in_points(
    small: Audit,
) -> None:
    (change,) = changes(arms(small, Seed(0)))
    assert change.arm == "noise"
    # 0.91 - 0.89 = 2.0 points.
    assert change.cost.replace("\u00a0", " ") == (
        "costs 2.0 points of accuracy (91.0 % without, 89.0 % with)"
    )
    # Misplaced without: 2 to 10 %; with: 30 to 50 %.
    assert change.effects[0].replace("\u00a0", " ") == (
        "The server, about each client: label shares · helps (data assigned to the wrong class "
        "6.0 % without, 40 % with)."
    )


def test_what_was_measured_of_bytes_and_time_is_told_beside_the_arm_without(
    small: Audit,
) -> None:
    none, noise = small.arms
    runs = (
        replace(none, traffic=Traffic(300, 700, 4, 6), seconds=Seconds(10.0, None)),
        replace(noise, traffic=Traffic(100, 150, 4, 6), seconds=Seconds(30.0, None)),
    )
    (change,) = changes(arms(replace(small, arms=runs), Seed(0)))
    # 250 of 1000 bytes; 30 of 10 seconds.
    assert change.cost.endswith("with), sends 0.25 times as much, takes 3.0 times as long")


def test_overlapping_intervals_are_no_clear_difference(small: Audit) -> None:
    findings = (
        *small.findings[:2],
        shares_finding("noise", client(0), TRUE, (0.92, 0.08)),
        shares_finding("noise", client(1), TRUE, (0.97, 0.03)),
    )
    (change,) = changes(arms(replace(small, findings=findings), Seed(0)))
    assert "no clear difference" in change.effects[0]


def test_a_defense_that_only_weakens_a_leak_is_said_not_to_stop_it(small: Audit) -> None:
    findings = (
        *small.findings[:2],
        shares_finding("noise", client(0), TRUE, (0.7, 0.3)),
        shares_finding("noise", client(1), TRUE, (0.72, 0.28)),
    )
    (change,) = changes(arms(replace(small, findings=findings), Seed(0)))
    assert "helps, yet does not stop the leak" in change.effects[0]


def test_an_arm_where_no_attack_could_run_is_no_proof_of_protection(small: Audit) -> None:
    cell = Cell("noise", 0, (SERVER,), "decaf", "Decaf()", "label_shares", (0, 1))
    refused = replace(
        small, findings=small.findings[:2], refusals=(Refusal(cell, client(0), ("updates",)),)
    )
    (change,) = changes(arms(refused, Seed(0)))
    assert "no proof of protection" in change.effects[0]


def test_without_a_bare_arm_nothing_is_compared(small: Audit) -> None:
    assert changes(arms(replace(small, arms=small.arms[1:]), Seed(0))) == ()
