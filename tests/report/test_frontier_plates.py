"""What defenses leave to be read stands against what the model is then worth."""

from dataclasses import replace

from overheard.audit.finding import Audit, Finding
from overheard.core.seeds import Seed
from overheard.report.exposures import arms
from overheard.report.frontier_plates import ADAPTIVE, frontier_plates
from overheard.report.plates import Plate
from tests.report.conftest import HOSTILE
from tests.report.people import identity_findings, people_audit

ACCURACIES = {"none": 0.8, "cheap": 0.78, "dear": 0.6, "useless": 0.5}


def findings(**strengths: float) -> list[Finding]:
    return [
        one
        for arm, strength in strengths.items()
        for one in identity_findings(arm, "ours", strength)
    ]


def plates(held: list[Finding], accuracies: dict[str, float] = ACCURACIES) -> tuple[Plate, ...]:
    return frontier_plates(arms(people_audit(held, accuracies), Seed(0)))


def best(plate: Plate) -> dict[str, str]:
    return {line[0]: line[-1] for line in plate.table.lines}


def test_arms_that_another_beats_both_ways_are_not_named() -> None:
    # Useless leaves more to be read than dear, and keeps less accuracy.
    (plate,) = plates(findings(none=4.0, cheap=2.5, dear=0.5, useless=1.5))
    assert best(plate) == {"none": "yes", "cheap": "yes", "dear": "yes", "useless": "no"}
    assert plate.note.endswith("these stand: none; cheap; dear.")
    drawing = plate.panels[0].drawing
    assert "dear" in drawing
    assert "useless" not in drawing


def test_accuracy_is_told_as_the_part_that_is_kept() -> None:
    (plate,) = plates(findings(none=4.0, dear=0.5))
    kept = {line[0]: line[-2] for line in plate.table.lines}
    assert kept == {"none": "100", "dear": "75"}  # 0.6 / 0.8


def test_the_strongest_attack_on_each_arm_decides_and_the_adaptive_one_is_dashed() -> None:
    # Cheap helps against who does not know it and not against who does.
    held = findings(none=3.0, cheap=0.5)
    (fooled,) = plates(held)
    adaptive = identity_findings("cheap", f"ours, {ADAPTIVE}", 6.0)
    (plate,) = plates([*held, *adaptive])
    assert best(fooled)["cheap"] == "yes"
    assert best(plate)["cheap"] == "no"
    assert plate.legend is not None
    assert fooled.legend is not None
    dashes = "stroke-dasharray"
    assert plate.legend.count(dashes) == fooled.legend.count(dashes) + 1


def test_there_is_no_frontier_without_two_arms_of_known_accuracy_one_of_them_bare() -> None:
    assert plates(findings(none=3.0)) == ()
    assert plates(findings(cheap=3.0, dear=1.0)) == ()
    audit = people_audit(findings(none=3.0, cheap=1.0), ACCURACIES)
    blank = replace(audit, arms=tuple(replace(run, accuracy={}) for run in audit.arms))
    assert frontier_plates(arms(blank, Seed(0))) == ()


def test_names_of_arms_are_escaped() -> None:
    held = [
        *findings(none=3.0),
        *identity_findings(f"{HOSTILE}\x1b", "ours", 1.0),
    ]
    (plate,) = plates(held, {"none": 0.8, f"{HOSTILE}\x1b": 0.7})
    assert "<script" not in plate.panels[0].drawing
    assert "\x1b" not in plate.note


def test_shares_have_no_frontier(small: Audit) -> None:
    assert frontier_plates(arms(small, Seed(0))) == ()
