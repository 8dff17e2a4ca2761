"""Findings on a question that is not installed are judged, compared and told all the same."""

from pathlib import Path

import pytest

from overheard.auditing.threat_results import with_verdicts
from overheard.findings.audit import Audit
from overheard.findings.document import FindingsDocument, read_findings
from overheard.findings.question import unknown_question
from overheard.gate.audit_changes import compare_audits
from overheard.gate.check import check
from overheard.gate.policy import LeakRule, Policy, VerdictRule
from overheard.plans.registries import questions
from overheard.report.evidence.annex import make_annex
from overheard.report.evidence.digests import CheckedFolder
from overheard.report.evidence.officer import OfficerWords
from overheard.report.exports import as_json
from overheard.report.page import render_page
from overheard.report.release.left_out import ReleaseSettings
from overheard.report.release.released_audit import released_audit
from overheard.report.release.released_findings import release_findings
from overheard.report.release.write import page_parts

ELSEWHERE = "owner_of_<record>"


@pytest.fixture
def found(rich: Audit, tmp_path: Path) -> FindingsDocument:
    """Findings on label shares, as if a package that is not here had the question."""
    assert ELSEWHERE not in questions()
    path = tmp_path / "findings.json"
    path.write_text(as_json(with_verdicts(rich)).replace("label_shares", ELSEWHERE))
    return read_findings(path)


def test_the_gate_judges_its_rows(found: FindingsDocument) -> None:
    rules = VerdictRule(name="verdicts", question=ELSEWHERE)
    near, far = (
        LeakRule(name=name, question=ELSEWHERE, score="l1", gain_at_most=most)
        for name, most in (("near", 0.01), ("far", 2.0))
    )
    judged = check(Policy(verdicts=(rules,), leaks=(near, far)), found).verdicts
    statuses = {
        name: {one.status for one in judged if one.rule == name}
        for name in ("verdicts", "near", "far")
    }
    assert "fail" in statuses["verdicts"]
    assert "fail" in statuses["near"]
    assert "fail" not in statuses["far"]
    assert "pass" in statuses["far"]


def test_a_comparison_names_its_scores(found: FindingsDocument) -> None:
    after = found.model_copy(update={"summary": found.summary[1:]})
    (change,) = compare_audits(found, after).changes
    assert (change.kind, change.remark) == ("score", "removed")
    assert ELSEWHERE in change.subject


def test_the_evidence_tells_its_verdicts(found: FindingsDocument) -> None:
    folder = CheckedFolder(Path("audit"), "b" * 64, ())
    annex = make_annex(found, OfficerWords(), folder, "2026-11-22")
    assert "owner of <record>" in repr(annex.sections)


def test_the_page_of_a_release_tells_its_verdicts(found: FindingsDocument) -> None:
    kept = release_findings(found, (), ReleaseSettings(least_group=1))
    parts = page_parts(kept.document, kept.left_out)
    page = render_page(released_audit(kept.document), "", parts)
    assert "Not on this page" not in page
    assert "owner of &lt;record&gt;" in page
    assert "<record>" not in page


def test_names_of_its_scores_are_printable() -> None:
    assert unknown_question("q").measure("a\u202eb").title.isprintable()
