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


def test_table_has_scores_guess_and_other_clients():
    audit = audit_of(leaking())
    (section,) = pages_of("words").sections(audit, with_verdicts(audit).arm_results)
    (table,) = section.blocks[0].tables
    cells = dict(zip(table.headers, table.rows[0], strict=True))
    assert cells["Average precision, rare words"].startswith("90")
    assert cells["Guessing"].startswith("30")
    assert cells["Against other clients"].startswith("10")


def test_figure_shows_how_many_of_the_first_words_are_correct():
    audit = audit_of(leaking())
    (section,) = pages_of("words").sections(audit, with_verdicts(audit).arm_results)
    (figure,) = section.blocks[1].figures
    # Of the listed words the first and the third were used.
    assert figure.table.headers[:3] == ("Attack", "First 1", "First 10")
    assert figure.table.rows[0][:2] == ("rows", "100")


def test_unchecked_claim_names_its_first_words():
    assert pages_of("words").describe_claim(leaking()[0]) == (
        "“<b>leek</b>”, “turnip”, “kale\\u202e”"
    )


@pytest.mark.parametrize("findings", [[], leaking()])
def test_sections_need_results(findings):
    audit = audit_of(findings)
    arms = with_verdicts(audit).arm_results if findings else ()
    assert bool(pages_of("words").sections(audit, arms)) == bool(findings)
