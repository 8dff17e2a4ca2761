"""The verdicts as JSON, for scripts."""

import json
from dataclasses import asdict

from overheard.findings.names import shorten
from overheard.gate.judged_findings import STATUS_ORDER, CheckResult
from overheard.gate.policy import Policy
from overheard.gate.rule_help import rule_kind
from overheard.gate.rule_sources import RuleSources
from overheard.gate.verdict import MAX_LENGTH, RuleVerdict

FORMAT = "overheard check"

VERSION = 1
"""Increased whenever a reader of the previous version would misread a document."""


def as_check_json(
    checked: CheckResult, policy: Policy, sources: RuleSources, exit_code: int
) -> str:
    """Return all verdicts as JSON, with the overall status first.

    Args:
        checked: the verdicts.
        policy: the policy that gave them.
        sources: where its rules are written.
        exit_code: the exit code of the command.

    """
    statuses = [verdict.status for verdict in checked.verdicts]
    kinds = {rule.name: rule_kind(rule) for rule in policy.rules}
    document = {
        "format": FORMAT,
        "version": VERSION,
        "status": checked.status,
        "exit_code": exit_code,
        "counts": {status: statuses.count(status) for status in STATUS_ORDER},
        "audit": _text(checked.title),
        "policy": sources.shown_path,
        "notes": list(map(_text, checked.notes)),
        "verdicts": [
            {"kind": kinds[verdict.rule], "line": sources.lines.get(verdict.rule)}
            | _verdict(verdict)
            for verdict in checked.verdicts
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def _verdict(verdict: RuleVerdict) -> dict[str, object]:
    figure, accepted = verdict.figure, verdict.acceptance
    return {
        "rule": _text(verdict.rule),
        "status": verdict.status,
        "subject": _text(verdict.subject),
        "arm": _text(verdict.arm),
        "observers": None if verdict.observers is None else list(verdict.observers),
        "attack": _text(verdict.attack),
        "score": _text(verdict.score),
        "value": None if figure is None else figure.model_dump(include={"mean", "low", "high"}),
        "limit": verdict.limit,
        "why": _text(verdict.why),
        "exception": None
        if accepted is None
        else asdict(accepted) | {"expires": accepted.expires.isoformat()},
    }


def _text(text: str) -> str:
    """Escape characters that could control a terminal, and shorten the text."""
    return shorten(text, MAX_LENGTH)
