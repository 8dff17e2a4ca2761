"""How well people are recognised is said in plain sentences, with what it is worth."""

from dataclasses import replace

import pytest

from overheard.auditing.exposures import arms
from overheard.core.seeds import Seed
from overheard.findings.exposures import Exposure
from overheard.findings.finding import Finding
from overheard.report.words import exposure_words
from tests.report.people import (
    MLP,
    USERS,
    identity_findings,
    people_audit,
)
from tests.worlds.audits import HOSTILE


def exposure(findings: list[Finding]) -> Exposure:
    (arm,) = arms(people_audit(findings, {"none": 0.8}), Seed(0))
    return arm.exposures[0]


def said(findings: list[Finding]) -> str:
    return " ".join(exposure_words(exposure(findings)))


def test_a_leak_is_told_with_the_figures_of_its_rows() -> None:
    findings = identity_findings("none", "ours", 3.0, runs=2)
    text, case = said(findings), exposure(findings).cases[0]
    assert exposure(findings).verdict == "leaks"
    top = f"{100 * case.row.value.mean:.0f}\u00a0%"
    assert f"names who is behind what is sent, right at the first try in {top}" in text
    precision = f"{100 * case.whole['mean_average_precision'].value.mean:.1f}\u00a0%"
    assert f"with an average precision of {precision}" in text
    assert "times chance" in text
    assert "that of guessing is 50.0\u00a0%" in text
    assert "The interval covers the users behind 96 targets and 2 runs." in text
    assert "class shares" not in text
    assert "shift" not in text


def test_where_nobody_is_recognised_it_does_not_say_leaks() -> None:
    findings = identity_findings("none", "ours", 0.0)
    assert exposure(findings).verdict in ("unclear", "silent")
    assert "names who is behind" not in said(findings)


def test_a_control_is_said_to_lie_inside_or_outside_of_the_null() -> None:
    findings = identity_findings("none", "ours", 3.0)
    assert "inside the " in said(findings)
    leaking = [
        replace(one, cell=replace(one.cell, is_control=True))
        for one in findings
        if not one.cell.is_control
    ]
    planned = [one for one in findings if not one.cell.is_control]
    assert "outside the " in said([*planned, *leaking])
    assert "There was no permutation control" in said(planned)


@pytest.mark.slow
def test_too_few_strangers_are_said_to_be_too_few() -> None:
    assert "the 24 targets of users it does not know" in said(
        identity_findings("none", "ours", 3.0)
    )
    assert "too few of them to tell that rate" in said(identity_findings("none", "ours", 3.0))
    none = identity_findings("none", "ours", 3.0, strangers=())
    assert "does not know" not in said(none)
    many = tuple(f"x{number}" for number in range(13))  # 13 in 8 rounds are 104
    enough = said(identity_findings("none", "ours", 3.0, strangers=many))
    assert "the 104 targets" in enough
    assert "too few" not in enough


def test_the_gain_over_the_published_attack_names_it_as_it_is_shown() -> None:
    findings = [
        *identity_findings("none", "ours", 4.0),
        *identity_findings("none", "mlp \x1b[31m", 1.0, part=MLP),
    ]
    text = said(findings)
    assert "points above mlp \\x1b[31m" in text
    assert "\x1b" not in text


def test_users_whom_nobody_knows_are_not_measured_and_no_shift_is_spoken_of() -> None:
    strangers = [
        one
        for one in identity_findings("none", "ours", 3.0, strangers=(HOSTILE,))
        if one.true_user not in USERS
    ]
    text = said(strangers)
    assert exposure(strangers).verdict == "unmeasured"
    assert "no known user took part" in text
    assert "shift" not in text
