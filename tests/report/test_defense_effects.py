"""Sentences on defenses depend on whether intervals overlap."""

from dataclasses import replace

from overheard.archive.run_time import RunTime
from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import SERVER, client
from overheard.findings.audit import Audit
from overheard.findings.finding import Cell, Refusal
from overheard.findings.traffic import Traffic
from overheard.report.defense_effects import describe_defense_effects
from tests.runs.audits import FITS_BEST, shares_finding

TRUE = (1.0, 0.0)


def test_a_defense_helps_if_intervals_do_not_overlap(
    small: Audit,
) -> None:
    # l1 is 0.12 for both clients without the defense, and 0.8 with it.
    findings = (
        shares_finding("none", client(0), TRUE, (0.94, 0.06)),
        shares_finding("none", client(1), (0.2, 0.8), (0.26, 0.74)),
        shares_finding("noise", client(0), TRUE, (0.6, 0.4)),
        shares_finding("noise", client(1), (0.2, 0.8), (0.6, 0.4)),
    )
    (change,) = describe_defense_effects(
        with_verdicts(replace(small, findings=findings)).arm_results
    )
    assert change.arm == "noise"
    # 0.91 - 0.89 = 2.0 points.
    assert change.cost.replace("\u00a0", " ") == (
        "costs 2.0 percentage points of accuracy (91.0 % without, 89.0 % with)"
    )
    assert change.effects[0].replace("\u00a0", " ") == (
        "The server, about each client: label shares · helps (data assigned to the wrong class "
        "6.0 % without, 40 % with)."
    )


def test_bytes_and_time_are_compared_with_the_arm_without_defenses(
    small: Audit,
) -> None:
    none, noise = small.arms
    runs = (
        replace(none, traffic=Traffic(300, 700, 4, 6), seconds=RunTime(10.0, None)),
        replace(noise, traffic=Traffic(100, 150, 4, 6), seconds=RunTime(30.0, None)),
    )
    (change,) = describe_defense_effects(with_verdicts(replace(small, arms=runs)).arm_results)
    # 250 of 1000 bytes; 30 of 10 seconds.
    assert change.cost.endswith(
        "with), sends 0.25 times as many bytes, takes 3.0 times as long"
    )


def test_overlapping_intervals_are_no_clear_difference(small: Audit) -> None:
    findings = (
        *small.findings[:2],
        shares_finding("noise", client(0), TRUE, (0.92, 0.08)),
        shares_finding("noise", client(1), TRUE, (0.97, 0.03)),
    )
    (change,) = describe_defense_effects(
        with_verdicts(replace(small, findings=findings)).arm_results
    )
    assert "no clear difference" in change.effects[0]


def test_says_if_a_defense_does_not_stop_the_leak(small: Audit) -> None:
    findings = (
        shares_finding("none", client(0), TRUE, (0.94, 0.06), fits=FITS_BEST),
        shares_finding("none", client(1), TRUE, (0.94, 0.06), fits=FITS_BEST),
        shares_finding("noise", client(0), TRUE, (0.7, 0.3), fits=FITS_BEST),
        shares_finding("noise", client(1), TRUE, (0.7, 0.3), fits=FITS_BEST),
    )
    (change,) = describe_defense_effects(
        with_verdicts(replace(small, findings=findings)).arm_results
    )
    assert "reduces the leak but does not stop it" in change.effects[0]


def test_an_arm_without_attacks_does_not_count_as_protected(small: Audit) -> None:
    cell = Cell("noise", 0, (SERVER,), "decaf", "Decaf()", "label_shares", (0, 1))
    refused = replace(
        small, findings=small.findings[:2], refusals=(Refusal(cell, client(0), ("updates",)),)
    )
    (change,) = describe_defense_effects(with_verdicts(refused).arm_results)
    assert "does not show protection" in change.effects[0]


def test_compares_nothing_without_an_undefended_arm(small: Audit) -> None:
    assert (
        describe_defense_effects(with_verdicts(replace(small, arms=small.arms[1:])).arm_results)
        == ()
    )
