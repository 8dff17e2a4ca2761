"""The verdicts in formats for machines: SARIF 2.1.0, JUnit XML and JSON."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from hashlib import sha256
from urllib.parse import quote

from overheard.findings.machine_formats import (
    MAX_LENGTH,
    JunitCase,
    JunitOutcome,
    SarifEntry,
    junit_suite,
    reader_text,
    sarif_log,
    sarif_message,
)
from overheard.findings.names import make_printable, shorten
from overheard.gate.judged_findings import STATUS_ORDER, CheckResult
from overheard.gate.policy import Policy, PolicyRule
from overheard.gate.rule_help import HELP, describe_rule, rule_kind
from overheard.gate.rule_sources import RuleSources
from overheard.gate.verdict import RuleVerdict, Status

FORMAT = "overheard check"
"""The name of the document and of the suite."""

VERSION = 1
"""Increased whenever a reader of the previous version would misread a document."""

LEVELS: dict[Status, str] = {
    "fail": "error",
    "inconclusive": "warning",
    "excused": "none",
    "excepted": "none",
}
"""The level of each status that is a result; what passes is none."""

_OUTCOMES: dict[Status, JunitOutcome] = {
    "pass": "passed",
    "fail": "failure",
    "inconclusive": "error",
    "excused": "skipped",
    "excepted": "skipped",
}


def as_sarif(checked: CheckResult, policy: Policy, sources: RuleSources) -> str:
    """Return a SARIF log with one result for each verdict that does not pass.

    Every rule is declared, so that a service closes the alerts of rules that pass again. What
    an exception accepts is a suppressed result with the reason.

    Args:
        checked: the verdicts.
        policy: the policy that gave them.
        sources: where its rules are written; results point there.

    """
    numbers = {rule.name: number for number, rule in enumerate(policy.rules)}
    uri = quote(sources.shown_path)
    results = [
        _result(verdict, numbers[verdict.rule], uri, sources.lines.get(verdict.rule, 1))
        for verdict in checked.verdicts
        if verdict.status in LEVELS
    ]
    properties: SarifEntry = {"audit": reader_text(checked.title), "status": checked.status}
    return sarif_log(list(map(_rule, policy.rules)), results, checked.notes, properties)


def _rule(rule: PolicyRule) -> SarifEntry:
    kind = rule_kind(rule)
    told = HELP[kind]
    return {
        "id": make_printable(rule.name),
        "shortDescription": {"text": reader_text(rule.name)},
        "fullDescription": {"text": f"{reader_text(describe_rule(rule))}. {told.asks}"},
        "help": {"text": told.remedy},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["privacy", kind]},
    }


def _result(verdict: RuleVerdict, number: int, uri: str, line: int) -> SarifEntry:
    place = {
        "physicalLocation": {
            "artifactLocation": {"uri": uri, "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": line},
        },
        "logicalLocations": [{"fullyQualifiedName": reader_text(verdict.subject)}],
    }
    digest = _fingerprint(verdict)
    result: SarifEntry = {
        "ruleId": make_printable(verdict.rule),
        "ruleIndex": number,
        "kind": "notApplicable" if verdict.status == "excused" else "fail",
        "level": LEVELS[verdict.status],
        "message": sarif_message(f"{verdict.status}: {'; '.join(_facts(verdict))}"),
        "locations": [place],
        # GitHub compares results by the key of the first one, and ignores the other.
        "partialFingerprints": {"primaryLocationLineHash": digest, "verdict/v1": digest},
        "properties": {"status": verdict.status, "score": reader_text(verdict.score)},
    }
    if verdict.acceptance is not None:
        accepted = verdict.acceptance
        result["level"] = LEVELS[accepted.status]
        until = f"accepted until {accepted.expires}: {accepted.reason}"
        result["suppressions"] = [
            {"kind": "external", "status": "accepted", "justification": reader_text(until)}
        ]
    return result


def _facts(verdict: RuleVerdict) -> Iterator[str]:
    yield f"{verdict.subject}; {verdict.score}"
    if verdict.figure_text:
        yield verdict.figure_text
    yield f"limit: {verdict.limit}"
    if verdict.why:
        yield verdict.why


def _fingerprint(verdict: RuleVerdict) -> str:
    """Return a digest of what is judged, which figures and limits do not change."""
    judged = json.dumps([verdict.rule, verdict.score, verdict.subject])
    return sha256(judged.encode()).hexdigest()[:32]


def as_junit(checked: CheckResult) -> str:
    """Return JUnit XML with one test case per verdict.

    A failed rule is a failure, an inconclusive one an error, and an excused or
    excepted one is skipped.
    """
    properties = [("audit", checked.title), *(("note", note) for note in checked.notes)]
    return junit_suite(FORMAT, list(map(_case, checked.verdicts)), properties)


def _case(verdict: RuleVerdict) -> JunitCase:
    parts = (verdict.figure_text, f"limit: {verdict.limit}", verdict.why)
    return JunitCase(
        verdict.rule,
        f"{verdict.subject}; {verdict.score}",
        _OUTCOMES[verdict.status],
        "; ".join(part for part in parts if part),
        verdict.status,
    )


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
    """Escape what could control a terminal or is no valid XML, and shorten the text."""
    return shorten(text, MAX_LENGTH)
