"""Checks an audit's findings against a policy."""

from datetime import UTC, date, datetime
from pathlib import Path

from overheard.findings.audit import Audit
from overheard.findings.document import FindingsDocument, read_findings
from overheard.gate.judged_findings import CheckResult, judge_findings
from overheard.gate.policy import Policy, read_policy
from overheard.report.exports import findings_document


def check(
    policy: Policy | Path,
    now: FindingsDocument | Audit | Path,
    before: FindingsDocument | Audit | Path | None = None,
    today: date | None = None,
) -> CheckResult:
    """Check findings against a policy.

    Args:
        policy: the rules, or their file.
        now: the findings to judge: an audit, or its `findings.json`.
        before: earlier findings, for rules on growth.
        today: the day on which exceptions must hold; None = the current day in UTC.

    Raises:
        PlanError: if earlier findings are given but no rule uses them, or if the policy is
            invalid.
        FindingsError: if a file contains no findings, or findings have two rows about the same.

    """
    rules = read_policy(policy) if isinstance(policy, Path) else policy
    day = datetime.now(UTC).date() if today is None else today
    return judge_findings(rules, _read(now), None if before is None else _read(before), day)


def _read(found: FindingsDocument | Audit | Path) -> FindingsDocument:
    if isinstance(found, Path):
        return read_findings(found)
    if isinstance(found, FindingsDocument):
        return found
    return findings_document(found)
