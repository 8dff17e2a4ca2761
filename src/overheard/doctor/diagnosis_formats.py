"""A diagnosis in formats for machines: JSON, JUnit XML and SARIF 2.1.0."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from overheard.doctor.criticism import (
    SEVERITIES,
    Criticism,
    Diagnosis,
    DoctorRule,
    Severity,
    Unseen,
)
from overheard.findings.machine_formats import (
    JunitCase,
    SarifEntry,
    junit_suite,
    reader_text,
    sarif_log,
    sarif_message,
)
from overheard.findings.names import shorten

FORMAT = "overheard doctor"
"""The name of the document and of the suite."""

VERSION = 1
"""Increased whenever a reader of the previous version would misread a document."""

MAX_TEXT = 1500
"""Longest text of a criticism, in characters: its evidence may come from anybody."""

LEVELS: dict[Severity, str] = {
    "critical": "error",
    "theoretical": "warning",
    "negligible": "note",
}
"""The level of each severity in SARIF."""

_PLACE_IN_CODE = re.compile(r"(?P<file>.+\.py):(?P<line>[1-9][0-9]*)")


def as_json(diagnosis: Diagnosis, target: str, exit_code: int) -> str:
    """Return a diagnosis as JSON, with the number of faults of each severity."""
    return json.dumps(as_document(diagnosis, target, exit_code), indent=1) + "\n"


def as_document(diagnosis: Diagnosis, target: str, exit_code: int) -> Mapping[str, object]:
    """Return what `as_json` writes."""
    found = diagnosis.criticisms
    return {
        "format": FORMAT,
        "version": VERSION,
        "target": _text(target),
        "exit_code": exit_code,
        "counts": {
            severity: sum(one.rule.severity == severity for one in found)
            for severity in SEVERITIES
        },
        "criticisms": [
            _rule_entry(one.rule)
            | {
                "what": _text(one.what),
                "where": _text(one.where),
                "evidence": _text(one.evidence),
            }
            for one in found
        ],
        "passed": [rule.id for rule in diagnosis.passed],
        "unseen": [{"id": one.rule.id, "why": _text(one.why)} for one in diagnosis.unseen],
        "notes": list(map(_text, diagnosis.notes)),
    }


def _rule_entry(rule: DoctorRule) -> dict[str, object]:
    return {name: _text(str(value)) for name, value in asdict(rule).items()}


def as_junit(diagnosis: Diagnosis, target: str) -> str:
    """Return JUnit XML: an alarm is a failure, another fault a skipped case with its text.

    What a rule could not look at is skipped, too.
    """
    cases = [
        *map(_fault_case, diagnosis.criticisms),
        *(JunitCase(rule.id, rule.title, "passed", "no fault") for rule in diagnosis.passed),
        *map(_unseen_case, diagnosis.unseen),
    ]
    properties = [("target", target), *(("note", note) for note in diagnosis.notes)]
    return junit_suite(FORMAT, cases, properties, MAX_TEXT)


def _fault_case(one: Criticism) -> JunitCase:
    outcome = LEVELS[one.rule.severity] == "error"
    return JunitCase(
        one.rule.id,
        f"{one.rule.title}: {one.where}",
        "failure" if outcome else "skipped",
        _message(one),
        one.rule.severity,
    )


def _unseen_case(one: Unseen) -> JunitCase:
    return JunitCase(one.rule.id, one.rule.title, "skipped", one.why, "not seen")


def as_sarif(diagnosis: Diagnosis, target: str) -> str:
    """Return a SARIF log with a result for each criticism; those of code point to its line."""
    rules = dict.fromkeys(
        [
            *(one.rule for one in diagnosis.criticisms),
            *diagnosis.passed,
            *(one.rule for one in diagnosis.unseen),
        ]
    )
    numbers = {rule.id: number for number, rule in enumerate(rules)}
    return sarif_log(
        list(map(_sarif_rule, rules)),
        [_sarif_result(one, numbers[one.rule.id], target) for one in diagnosis.criticisms],
        (*diagnosis.notes, *(f"{one.rule.id}: {one.why}" for one in diagnosis.unseen)),
        {"target": reader_text(target)},
    )


def _sarif_rule(rule: DoctorRule) -> SarifEntry:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": f"{rule.title}. {rule.reference}"},
        "help": {"text": rule.mend},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
        "properties": {"tags": ["privacy", rule.severity]},
    }


def _sarif_result(one: Criticism, number: int, target: str) -> SarifEntry:
    found = _PLACE_IN_CODE.match(one.where)
    # Files of code are told as they lie in the app, and services look from the root of sources.
    app = Path(target).parent if target.endswith(".py") else Path(target)
    file, line = (
        (target, 1) if found is None else ((app / found["file"]).as_posix(), int(found["line"]))
    )
    judged = json.dumps([one.rule.id, target, one.where if found is None else file])
    digest = sha256(judged.encode()).hexdigest()[:32]
    return {
        "ruleId": one.rule.id,
        "ruleIndex": number,
        "kind": "fail",
        "level": LEVELS[one.rule.severity],
        "message": sarif_message(_message(one), MAX_TEXT),
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {
                        "uri": quote(file, errors="surrogateescape"),
                        "uriBaseId": "%SRCROOT%",
                    },
                    "region": {"startLine": line},
                },
                "logicalLocations": [{"fullyQualifiedName": reader_text(one.where)}],
            }
        ],
        # GitHub compares results by the key of the first one.
        "partialFingerprints": {"primaryLocationLineHash": digest},
    }


def _message(one: Criticism) -> str:
    return f"{one.what} Evidence: {one.evidence}. To mend it: {one.rule.mend}"


def _text(text: str) -> str:
    return shorten(text, MAX_TEXT)
