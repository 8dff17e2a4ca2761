"""Sentences on shifts say who tells what from what, beside the guess."""

import pytest

from overheard.auditing.exposures import arms
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.findings.finding import Audit
from overheard.report.changes import changes
from overheard.report.words import exposure_words, headlines
from tests.report.shifts import shift_audit, shift_findings


def words(audit: Audit) -> str:
    (arm, *_) = arms(audit, Seed(0))
    return " ".join(exposure_words(arm.exposures[0])).replace("\u00a0", " ")


def test_a_shift_that_shows_is_told_in_pairs_beside_the_guess() -> None:
    said = words(shift_audit(shift_findings("none", "tracker", 9.0, runs=20)))
    assert said.startswith(
        "Client 0 tells a shift of the other clients' data from an exchange without shift in "
        "100 of 100 pairs (guessing: 50 of 100; 95 % interval "
    )
    assert "it finds 100.0 % (95 % interval 83 to 100 %) at 5 % false alarms" in said
    assert "half of the alarms come in the round of the shift" in said
    assert "Which classes rose it has right in 100.0 % of those" in said
    assert "Attack: tracker, the only one that ran. The interval covers 20 runs." in said


def test_a_shift_that_does_not_show_is_not_told_apart_from_guessing() -> None:
    findings = shift_findings("none", "trend", 0.0, runs=12, has_alarm=False)
    audit = shift_audit(findings)
    assert arms(audit, Seed(0))[0].exposures[0].verdict in ("unclear", "silent")
    said = words(audit)
    assert (
        "better than guessing a shift of the other clients' data: the best attack is right in"
        in said
        or ("no better than guessing a shift of the other clients' data" in said)
    )
    assert "too few controls ran" in said
    assert "It states no threshold, so it raises no alarm of its own." in said
    assert "Which classes rose" not in said


def test_without_a_control_nothing_is_said_of_the_leak() -> None:
    audit = shift_audit(shift_findings("none", "tracker", 9.0, runs=3, has_controls=False))
    (arm,) = arms(audit, Seed(0))
    assert arm.exposures[0].verdict == "unmeasured"
    (said,) = headlines(audit, Seed(0))
    assert "was not measured: that takes runs with a shift, each beside its control" in said
    assert "Not measured does not mean that there is no leak." in said


def test_controls_do_not_count_for_what_an_arm_was_worth() -> None:
    # Planned runs reach 95 %, controls 30 %.
    (arm,) = arms(shift_audit(shift_findings("none", "tracker", 9.0, runs=2)), Seed(0))
    assert arm.accuracy == 0.95
    assert len(arm.runs) == 2


@pytest.mark.slow
def test_a_defense_that_hides_the_shift_helps_and_its_cost_stands_beside() -> None:
    findings = [
        *shift_findings("none", "tracker", 9.0, runs=20),
        *shift_findings("local DP", "tracker", 0.0, runs=20),
        *shift_findings("central DP", "tracker", 9.0, runs=2, has_controls=False),
    ]
    local, central = changes(arms(shift_audit(findings), Seed(0)))
    assert local.cost.startswith("costs 5.0 percentage points of accuracy")
    assert "shift · helps (shifts told from controls 100" in local.effects[0]
    assert "not measured, since no control ran beside it" in central.effects[0]


def test_intervals_of_a_change_are_not_said_to_be_of_shares() -> None:
    said = words(shift_audit(shift_findings("none", "tracker", 9.0, runs=6)))
    assert "contain the true change for" in said
    assert "contain the true share for" not in said


def test_of_clients_that_did_not_shift_nothing_is_said_to_be_told() -> None:
    targets = tuple(map(client, (1, 2, 3)))
    findings = shift_findings("none", "tracker", 9.0, runs=4, targets=targets)
    assert words(shift_audit(findings)).startswith("Client 0 tells a shift of client 1's data")
