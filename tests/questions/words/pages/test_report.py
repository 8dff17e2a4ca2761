"""The report on words: sentences, table, figure, and escaped examples."""

import pytest

from overheard.auditing.threat_results import with_verdicts
from overheard.findings.audit import Audit
from overheard.findings.finding import ArmRun, Finding
from overheard.report.page import render_page
from overheard.report.page_registry import pages_of
from tests.questions.words.findings import SEEDS, leaking, silent


def audit_of(findings: list[Finding]) -> Audit:
    arms = tuple(ArmRun("none", seed, (), {}, 0, 6) for seed in SEEDS)
    return Audit("Words", "Six clients.", ("a", "b"), arms, tuple(findings), (), "", {})


def test_examples_of_correct_words_are_quoted_and_escaped():
    audit = with_verdicts(audit_of(leaking()))
    (threat,) = audit.arm_results[0].threat_results
    details = " ".join(pages_of("words").detail_sentences(threat))
    assert "“<b>leek</b>”, “kale\\u202e”" in details
    assert "turnip" not in details
    page = render_page(audit)
    assert "<b>leek</b>" not in page
    assert "&lt;b&gt;leek&lt;/b&gt;" in page
    assert "\u202e" not in page


def test_no_word_is_quoted_if_nothing_leaks():
    audit = audit_of(silent())
    (arm,) = with_verdicts(audit).arm_results
    (threat,) = arm.threat_results
    details = " ".join(pages_of("words").detail_sentences(threat))
    assert "leek" not in details
    assert "Held against the words of other clients, the same claims have 20" in details


def test_unchecked_claim_names_its_first_words():
    assert pages_of("words").describe_claim(leaking()[0]) == (
        "“<b>leek</b>”, “turnip”, “kale\\u202e”"
    )


@pytest.mark.parametrize("findings", [[], leaking()])
def test_sections_need_results(findings):
    audit = audit_of(findings)
    arms = with_verdicts(audit).arm_results if findings else ()
    assert bool(pages_of("words").sections(audit, arms)) == bool(findings)
