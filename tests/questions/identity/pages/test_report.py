"""Sentences, tables and figures on identities."""

from dataclasses import replace

import pytest

from overheard.auditing.threat_results import with_verdicts
from overheard.drawing.figures import ReportFigure, ReportTable
from overheard.findings.finding import Finding
from overheard.findings.threat_results import ThreatResult
from overheard.questions.identity.pages.identity_figures import identity_figures
from overheard.questions.identity.pages.report import identity_tables
from overheard.report.threat_sentences import threat_sentences
from tests.report.user_audits import (
    MLP,
    USERS,
    identity_findings,
    user_audit,
)
from tests.runs.audits import HOSTILE


def threat_result(findings: list[Finding]) -> ThreatResult:
    (arm,) = with_verdicts(user_audit(findings, {"none": 0.8})).arm_results
    return arm.threat_results[0]


def said(findings: list[Finding]) -> str:
    return " ".join(threat_sentences(threat_result(findings)))


def test_does_not_claim_a_leak_without_signal() -> None:
    findings = identity_findings("none", "ours", 0.0)
    assert threat_result(findings).verdict == "inconclusive"
    assert "names the user who" not in said(findings)


def test_places_the_control_inside_or_outside_the_permutation_range() -> None:
    findings = identity_findings("none", "ours", 3.0)
    assert "inside the " in said(findings)
    leaking = [
        replace(finding, cell=replace(finding.cell, is_control=True))
        for finding in findings
        if not finding.cell.is_control
    ]
    planned = [finding for finding in findings if not finding.cell.is_control]
    assert "outside the " in said([*planned, *leaking])
    assert "There was no permutation control" in said(planned)


@pytest.mark.slow
def test_warns_if_unknown_users_have_too_few_targets() -> None:
    some = said(identity_findings("none", "ours", 3.0))
    assert "the 24 targets of unknown users" in some
    assert "too few to measure this rate" in some
    none = identity_findings("none", "ours", 3.0, strangers=())
    assert "unknown users" not in said(none)
    many = tuple(f"x{number}" for number in range(13))  # 13 in 8 rounds are 104
    enough = said(identity_findings("none", "ours", 3.0, strangers=many))
    assert "the 104 targets" in enough
    assert "too few" not in enough


def test_escapes_the_name_of_the_published_attack_in_the_gain() -> None:
    findings = [
        *identity_findings("none", "ours", 4.0),
        *identity_findings("none", "mlp \x1b[31m", 1.0, part=MLP),
    ]
    text = said(findings)
    assert "points above that of mlp \\x1b[31m" in text
    assert "\x1b" not in text


def test_states_that_unknown_users_alone_are_not_measured() -> None:
    strangers = [
        finding
        for finding in identity_findings("none", "ours", 3.0, strangers=(HOSTILE,))
        if finding.true_user not in USERS
    ]
    text = said(strangers)
    assert threat_result(strangers).verdict == "unmeasured"
    assert "no known user took part" in text
    assert "shift" not in text


def tables(findings: list[Finding]) -> dict[str, ReportTable]:
    all_tables = identity_tables(with_verdicts(user_audit(findings, {"none": 0.8})).arm_results)
    assert all(len(line) == len(table.headers) for table in all_tables for line in table.rows)
    return {table.caption.partition(" (")[0]: table for table in all_tables}


def test_an_attack_has_a_row_in_each_table_whose_scores_it_has() -> None:
    by_title = tables(
        [
            *identity_findings("none", "ours", 4.0),
            *identity_findings("none", "mlp", 1.5, part=MLP, says_unseen=False),
        ]
    )
    assert {title: [line[1] for line in table.rows] for title, table in by_title.items()} == {
        "Re-identification": ["ours", "mlp"],
        "Pair matching": ["ours", "mlp"],
        "Users unknown to the attacker": ["ours", "mlp"],
        "Control run: examples reassigned at random among all clients": ["ours", "mlp"],
        "Gain over the published attack, paired by user": ["ours"],
    }
    (gain,) = by_title["Gain over the published attack, paired by user"].rows
    assert gain[2] == "mlp"


def report_figures(findings: list[Finding]) -> tuple[ReportFigure, ...]:
    return identity_figures(with_verdicts(user_audit(findings, {"none": 0.8})).arm_results)


def test_the_table_lists_the_drawn_values() -> None:
    (report_figure,) = report_figures(identity_findings("none", "ours", 9.0, strangers=()))
    figures = dict(zip(report_figure.table.headers, report_figure.table.rows[0], strict=True))
    assert figures["Attack"] == "ours"
    assert figures["True user in the top 1"] == figures["Average precision, median"] == "100"
    assert figures["TPR at 1 % FPR"] == "100"


def test_escapes_names() -> None:
    (report_figure,) = report_figures(identity_findings("none", f"{HOSTILE}\x1b[31m", 3.0))
    assert "<script" not in report_figure.legend
    assert all("<script" not in panel.drawing for panel in report_figure.panels)
    assert "\x1b" not in report_figure.table.rows[0][0]
