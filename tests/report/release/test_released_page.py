"""The page of a release has the results of the audit in all parts that need no claims."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from overheard.auditing.threat_results import with_verdicts
from overheard.findings.audit import Audit
from overheard.findings.document import read_findings
from overheard.report.exports import as_json
from overheard.report.page import render_page
from overheard.report.release.left_out import ReleaseSettings
from overheard.report.release.released_audit import released_audit
from overheard.report.release.released_findings import release_findings
from overheard.report.release.write import page_parts
from overheard.report.threat_sentences import threat_sentences
from tests.report.shift_audits import shift_audit, shift_findings
from tests.report.user_audits import (
    attribute_findings,
    identity_findings,
    sender_findings,
    user_audit,
)

ARM, ATTACK = "no defense", "reidentify"


def users() -> Audit:
    """An audit of three questions on users."""
    findings = [
        *identity_findings(ARM, ATTACK, 2.0),
        *sender_findings(ARM, "link", 2.0),
        *attribute_findings(ARM, "forest", 2.0),
    ]
    return user_audit(findings, {ARM: 0.8})


def shifts() -> Audit:
    """An audit of shifts."""
    return shift_audit(shift_findings(ARM, "shift", 2.0))


@pytest.mark.parametrize("name", ["rich", "users", "shifts"])
def test_every_part_is_there_with_the_same_verdicts(rich: Audit, tmp_path: Path, name: str):
    made = {"rich": lambda: rich, "users": users, "shifts": shifts}
    audit = with_verdicts(made[name]())
    path = tmp_path / "findings.json"
    path.write_text(as_json(audit))
    kept = release_findings(read_findings(path), (), ReleaseSettings(least_group=1))
    again = released_audit(kept.document)
    page = render_page(again, "", page_parts(kept.document, kept.left_out))
    assert "Not on this page" not in page
    assert "Overheard failed" not in "".join(
        sentence
        for arm in again.arm_results
        for one in arm.threat_results
        for sentence in threat_sentences(one)
    )
    for arm, own in zip(audit.arm_results, again.arm_results, strict=True):
        for one, other in zip(arm.threat_results, own.threat_results, strict=True):
            # Names of attacks that are not installed do not leave.
            unnamed = {"attack": "", "shared_gains": {}}
            assert replace(other.judgement, **unnamed) == replace(one.judgement, **unnamed)
            assert [row.score for row in other.rows] == [row.score for row in one.rows]
            assert [found.headline_row.value for found in other.attack_results] == [
                found.headline_row.value for found in one.attack_results
            ]
    assert re.findall(r"<script>alert", page) == []
