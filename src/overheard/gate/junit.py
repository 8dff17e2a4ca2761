"""The verdicts as JUnit XML, which pipelines show as tests."""

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from overheard.findings.names import shortened
from overheard.gate.check import Checked
from overheard.gate.verdict import LONGEST, Status, Verdict

SUITE = "overheard check"

_ELEMENTS: dict[Status, str] = {
    "fail": "failure",
    "inconclusive": "error",
    "excused": "skipped",
}


def as_junit(checked: Checked) -> str:
    """One test case a verdict; inconclusive is an error, excused is skipped."""
    statuses = [verdict.status for verdict in checked.verdicts]
    counts = {
        "tests": str(len(statuses)),
        "failures": str(statuses.count("fail")),
        "errors": str(statuses.count("inconclusive")),
        "skipped": str(statuses.count("excused")),
    }
    suites = Element("testsuites", {"name": SUITE, **counts})
    suite = SubElement(suites, "testsuite", {"name": SUITE, **counts})
    properties = SubElement(suite, "properties")
    SubElement(properties, "property", {"name": "audit", "value": _plain(checked.title)})
    for note in checked.notes:
        SubElement(properties, "property", {"name": "note", "value": _plain(note)})
    for verdict in checked.verdicts:
        _case(suite, verdict)
    indent(suites)
    return tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: Element, verdict: Verdict) -> None:
    name = _plain(f"{verdict.what}; {verdict.score}")
    case = SubElement(suite, "testcase", {"classname": _plain(verdict.rule), "name": name})
    parts = (verdict.told_figure, f"limit: {verdict.limit}", verdict.why)
    said = _plain("; ".join(part for part in parts if part))
    if verdict.status in _ELEMENTS:
        found = SubElement(case, _ELEMENTS[verdict.status], {"message": said})
        found.set("type", verdict.status)
    else:
        SubElement(case, "system-out").text = said


def _plain(text: str) -> str:
    """Without the characters that XML has no way to write: they are spelled out."""
    return shortened(text, LONGEST)
