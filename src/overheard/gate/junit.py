"""The verdicts as JUnit XML, which pipelines display as tests."""

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from overheard.findings.names import shorten
from overheard.gate.judged_findings import CheckResult
from overheard.gate.verdict import MAX_LENGTH, RuleVerdict, Status

SUITE = "overheard check"

_ELEMENTS: dict[Status, str] = {
    "fail": "failure",
    "inconclusive": "error",
    "excused": "skipped",
    "excepted": "skipped",
}


def as_junit(checked: CheckResult) -> str:
    """Return JUnit XML with one test case per verdict.

    A failed rule is a failure, an inconclusive one an error, and an excused or
    excepted one is skipped.
    """
    statuses = [verdict.status for verdict in checked.verdicts]
    counts = {
        "tests": str(len(statuses)),
        "failures": str(statuses.count("fail")),
        "errors": str(statuses.count("inconclusive")),
        "skipped": str(statuses.count("excused") + statuses.count("excepted")),
    }
    suites = Element("testsuites", {"name": SUITE, **counts})
    suite = SubElement(suites, "testsuite", {"name": SUITE, **counts})
    properties = SubElement(suite, "properties")
    SubElement(properties, "property", {"name": "audit", "value": _xml_text(checked.title)})
    for note in checked.notes:
        SubElement(properties, "property", {"name": "note", "value": _xml_text(note)})
    for verdict in checked.verdicts:
        _add_case(suite, verdict)
    indent(suites)
    return tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _add_case(suite: Element, verdict: RuleVerdict) -> None:
    name = _xml_text(f"{verdict.subject}; {verdict.score}")
    case = SubElement(suite, "testcase", {"classname": _xml_text(verdict.rule), "name": name})
    parts = (verdict.figure_text, f"limit: {verdict.limit}", verdict.why)
    message = _xml_text("; ".join(part for part in parts if part))
    if verdict.status in _ELEMENTS:
        element = SubElement(case, _ELEMENTS[verdict.status], {"message": message})
        element.set("type", verdict.status)
    else:
        SubElement(case, "system-out").text = message


def _xml_text(text: str) -> str:
    """Escape the characters that XML cannot represent, and shorten the text."""
    return shorten(text, MAX_LENGTH)
