"""Documents for machines that the gate and the doctor share: SARIF 2.1.0 and JUnit XML.

Code scanning services display SARIF as alerts, and pipelines JUnit XML as tests. The names of
properties of SARIF are those of the standard (OASIS, "Static Analysis Results Interchange
Format 2.1.0", section 3).
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Literal, final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from overheard.findings.names import shorten

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

MAX_LENGTH = 300
"""Longest name or reason shown, in characters: names in findings may come from anybody."""

SarifEntry = dict[str, object]

JunitOutcome = Literal["passed", "failure", "error", "skipped"]


@final
@dataclass(frozen=True, slots=True)
class JunitCase:
    """A test case of JUnit XML.

    Args:
        classname: what is tested, such as the name of a rule.
        name: the name of the case.
        outcome: what became of it.
        message: why.
        type: kind of a failure, error or skip, such as the status of a verdict.

    """

    classname: str
    name: str
    outcome: JunitOutcome
    message: str
    type: str = ""


def sarif_log(
    rules: Sequence[SarifEntry],
    results: Sequence[SarifEntry],
    notes: Iterable[str],
    properties: SarifEntry,
) -> str:
    """Return a SARIF log with one run.

    Args:
        rules: all rules, so that a service closes the alerts of rules that pass again.
        results: what they found.
        notes: sentences on the run.
        properties: further facts on the run.

    """
    run = {
        "tool": {
            "driver": {"name": "overheard", "version": version("overheard"), "rules": rules}
        },
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {"level": "note", "message": sarif_message(note)} for note in notes
                ],
            }
        ],
        "results": results,
        "properties": properties,
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=1) + "\n"


def sarif_message(text: str, length: int = MAX_LENGTH) -> SarifEntry:
    """Return a text of a SARIF log; see `reader_text`."""
    return {"text": reader_text(text, length)}


def reader_text(text: str, length: int = MAX_LENGTH) -> str:
    """Escape characters that could control a reader, undo links, and shorten the text."""
    # A message may contain links (section 3.11.6); names in findings must not make any.
    return shorten(text.replace("](", "] ("), length)


def junit_suite(
    suite_name: str,
    cases: Sequence[JunitCase],
    properties: Iterable[tuple[str, str]],
    length: int = MAX_LENGTH,
) -> str:
    """Return JUnit XML with one suite. Texts are escaped and shortened."""
    outcomes = [case.outcome for case in cases]
    counts = {
        "tests": str(len(outcomes)),
        "failures": str(outcomes.count("failure")),
        "errors": str(outcomes.count("error")),
        "skipped": str(outcomes.count("skipped")),
    }
    suites = Element("testsuites", {"name": suite_name, **counts})
    suite = SubElement(suites, "testsuite", {"name": suite_name, **counts})
    described = SubElement(suite, "properties")
    for name, value in properties:
        SubElement(described, "property", {"name": name, "value": shorten(value, length)})
    for case in cases:
        names = {
            "classname": shorten(case.classname, length),
            "name": shorten(case.name, length),
        }
        element, message = SubElement(suite, "testcase", names), shorten(case.message, length)
        if case.outcome == "passed":
            SubElement(element, "system-out").text = message
        else:
            outcome = SubElement(element, case.outcome, {"message": message})
            outcome.set("type", case.type)
    indent(suites)
    return tostring(suites, encoding="unicode", xml_declaration=True) + "\n"
