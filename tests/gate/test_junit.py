"""JUnit XML is valid whatever the names in the findings."""

from xml.etree.ElementTree import Element, fromstring

from hypothesis import given
from hypothesis import strategies as st

from overheard.findings.document_rows import IntervalEstimate
from overheard.gate.judged_findings import CheckResult
from overheard.gate.verdict import RuleVerdict, Status
from overheard.gate.verdict_formats import as_junit

FIGURE = IntervalEstimate(mean=0.7, low=0.65, high=0.75)


def verdict(status: Status, why: str = "", what: str = "bare; lira") -> RuleVerdict:
    return RuleVerdict("records", "auc", what, status, "at most 0.6", FIGURE, why)


def read(*verdicts: RuleVerdict, title: str = "t", notes: tuple[str, ...] = ()) -> Element:
    # Parsing is safe: the XML is our own output.
    return fromstring(as_junit(CheckResult(title, verdicts, notes)).encode())


def test_every_verdict_is_a_test_case():
    root = read(
        verdict("pass"), verdict("fail", "beyond"), verdict("inconclusive"), verdict("excused")
    )
    counts = {"tests": "4", "failures": "1", "errors": "1", "skipped": "1"}
    (suite,) = root
    for element in (root, suite):
        assert {name: element.get(name) for name in counts} == counts
    cases = suite.findall("testcase")
    assert [[child.tag for child in case] for case in cases] == [
        ["system-out"], ["failure"], ["error"], ["skipped"],
    ]  # fmt: skip
    assert (cases[0].get("classname"), cases[0].get("name")) == ("records", "bare; lira; auc")
    assert cases[0][0].text == "0.7 (0.65 to 0.75); limit: at most 0.6"
    assert cases[1][0].get("message") == "0.7 (0.65 to 0.75); limit: at most 0.6; beyond"


def test_title_and_notes_are_properties():
    properties = read(title="Audit", notes=("careful",)).iter("property")
    assert [(one.get("name"), one.get("value")) for one in properties] == [
        ("audit", "Audit"),
        ("note", "careful"),
    ]


def test_markup_stays_text_and_control_characters_are_spelled():
    hostile = '"/><failure a="\x00\x1b]0;x\x07]]>&amp;\ud800\ufffe\u202e\n'
    (case,) = read(verdict("fail", hostile, hostile), title=hostile).iter("testcase")
    assert [child.tag for child in case] == ["failure"]
    name = case.get("name") or ""
    assert name.startswith('"/><failure a="\\x00\\x1b]0;x\\x07]]>&amp;\\ud800\\ufffe\\u202e\\n')


@given(st.text(st.characters(exclude_categories=())), st.text())
def test_any_text_gives_valid_xml(what: str, why: str):
    (case,) = read(verdict("inconclusive", why, what)).iter("testcase")
    assert len(case) == 1


def test_long_names_are_shortened():
    assert (
        len(as_junit(CheckResult("t", (verdict("fail", "y" * 10**6, "x" * 10**6),), ()))) < 2000
    )
