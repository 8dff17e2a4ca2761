"""A notebook shows the verdict on each question, as the report does."""

import re
from dataclasses import replace
from html import unescape

from overheard.auditing.threat_results import collect_arms
from overheard.core.seeds import Seed
from overheard.findings.finding import Audit
from overheard.report.notebook import verdict_table
from overheard.report.page_registry import pages_of
from overheard.report.verdict_sentences import badge, margin_text
from tests.report.user_audits import identity_findings, user_audit


def leaking_audit() -> Audit:
    """One attack that knows most users."""
    findings = identity_findings("none", "ours", 3.0, has_controls=False)
    return user_audit(findings, {"none": 0.9})


def cells(page: str) -> list[list[str]]:
    """The texts of a table's cells, by line."""
    body = page.partition("<tbody>")[2].partition("</tbody>")[0]
    return [
        [unescape(cell) for cell in re.findall("<td>(.*?)</td>", line)]
        for line in body.split("</tr>")
        if line
    ]


def test_each_threat_of_each_arm_has_its_verdict(rich: Audit) -> None:
    lines = cells(verdict_table(rich))
    expected = [
        (arm.name, result.title, badge(result.judgement))
        for arm in collect_arms(rich, Seed(0))
        for result in arm.threat_results
    ]
    assert [tuple(line[:3]) for line in lines] == expected
    assert len({line[2] for line in lines}) > 1


def test_a_leak_shows_its_p_value_its_gain_and_the_margin() -> None:
    audit = leaking_audit()
    (arm, *_) = collect_arms(audit, Seed(0))
    result, line = arm.threat_results[0], cells(verdict_table(audit))[0]
    judgement, pages = result.judgement, pages_of("identity")
    assert judgement.verdict == "leaks"
    assert judgement.p_value is not None
    assert line[2] == "Leaks"
    assert 0 < float(line[3]) <= 0.025
    assert float(line[4].split()[0]) > 0
    assert line[6] == margin_text(judgement, pages)


def test_says_why_too_few_targets_cannot_be_judged_and_how_many_leaks_are_false(
    small: Audit,
) -> None:
    unpaired = tuple(replace(one, redrawn_fits=()) for one in small.findings)
    page = verdict_table(replace(small, findings=unpaired))
    assert cells(page)[0][2] == "Not enough to judge"
    assert "Not enough to judge: with so few targets and runs" in page
    assert "rests on a test" not in page
    assert "rests on a test" in verdict_table(leaking_audit())
