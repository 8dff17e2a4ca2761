"""The verdicts as SARIF 2.1.0, which code scanning services display as alerts.

The names of properties are those of the standard (OASIS, "Static Analysis Results Interchange
Format 2.1.0", section 3).
"""

import json
from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import version
from urllib.parse import quote

from overheard.findings.names import make_printable, shorten
from overheard.gate.judged_findings import CheckResult
from overheard.gate.policy import Policy, PolicyRule
from overheard.gate.rule_help import HELP, describe_rule, rule_kind
from overheard.gate.rule_sources import RuleSources
from overheard.gate.verdict import MAX_LENGTH, RuleVerdict, Status

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

LEVELS: dict[Status, str] = {
    "fail": "error",
    "inconclusive": "warning",
    "excused": "none",
    "excepted": "none",
}
"""The level of each status that is a result; what passes is none."""

_Entry = dict[str, object]


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
    driver = {
        "name": "overheard",
        "version": version("overheard"),
        "rules": [_rule(rule) for rule in policy.rules],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {"level": "note", "message": _message(note)} for note in checked.notes
                ],
            }
        ],
        "results": [
            _result(verdict, numbers[verdict.rule], uri, sources.lines.get(verdict.rule, 1))
            for verdict in checked.verdicts
            if verdict.status in LEVELS
        ],
        "properties": {"audit": _text(checked.title), "status": checked.status},
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=1) + "\n"


def _rule(rule: PolicyRule) -> _Entry:
    kind = rule_kind(rule)
    told = HELP[kind]
    return {
        "id": make_printable(rule.name),
        "shortDescription": {"text": _text(rule.name)},
        "fullDescription": {"text": f"{_text(describe_rule(rule))}. {told.asks}"},
        "help": {"text": told.remedy},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["privacy", kind]},
    }


def _result(verdict: RuleVerdict, number: int, uri: str, line: int) -> _Entry:
    place = {
        "physicalLocation": {
            "artifactLocation": {"uri": uri, "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": line},
        },
        "logicalLocations": [{"fullyQualifiedName": _text(verdict.subject)}],
    }
    digest = _fingerprint(verdict)
    result: _Entry = {
        "ruleId": make_printable(verdict.rule),
        "ruleIndex": number,
        "kind": "notApplicable" if verdict.status == "excused" else "fail",
        "level": LEVELS[verdict.status],
        "message": _message(f"{verdict.status}: {'; '.join(_facts(verdict))}"),
        "locations": [place],
        # GitHub compares results by the key of the first one, and ignores the other.
        "partialFingerprints": {"primaryLocationLineHash": digest, "verdict/v1": digest},
        "properties": {"status": verdict.status, "score": _text(verdict.score)},
    }
    if verdict.acceptance is not None:
        accepted = verdict.acceptance
        result["level"] = LEVELS[accepted.status]
        until = f"accepted until {accepted.expires}: {accepted.reason}"
        result["suppressions"] = [
            {"kind": "external", "status": "accepted", "justification": _text(until)}
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


def _message(text: str) -> _Entry:
    return {"text": _text(text)}


def _text(text: str) -> str:
    """Escape characters that could control a reader, undo links, and shorten the text."""
    # A message may contain links (section 3.11.6); names in findings must not make any.
    return shorten(text.replace("](", "] ("), MAX_LENGTH)
