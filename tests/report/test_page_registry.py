"""A report finds the pages of a question by name, and works without them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, final

import pytest

from overheard.auditing.threat_results import with_verdicts
from overheard.core.plugin_registry import PluginRegistry
from overheard.core.scorer import Scorer
from overheard.drawing.question_pages import DefaultQuestionPages
from overheard.findings.audit import Audit
from overheard.findings.number_format import Measure
from overheard.findings.question import Question
from overheard.plans.registries import QUESTIONS, questions
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer
from overheard.report.page import render_page
from overheard.report.page_registry import PAGES, pages_of
from overheard.report.threat_sentences import threat_sentences


@final
@dataclass(frozen=True, slots=True)
class WeatherQuestion(Question[LabelShares]):
    """A question from outside that brings no pages: it scores as label shares do."""

    name = "local_weather"
    source = "<b>nobody</b>, 2026"
    measures = MappingProxyType({"l1": Measure("Degrees off", "\u00a0K", 1.0)})

    @property
    def scorer(self) -> Scorer[LabelShares]:
        return LabelSharesScorer()


@pytest.fixture
def outside(small: Audit, monkeypatch: pytest.MonkeyPatch) -> Iterator[Audit]:
    """The small audit, as if it had asked about the weather."""
    found = PluginRegistry.plugins

    def parts(kind: PluginRegistry[Any]) -> Mapping[str, type[Any]]:
        more = {WeatherQuestion.name: WeatherQuestion} if kind == QUESTIONS else {}
        return {**found(kind), **more}

    monkeypatch.setattr(PluginRegistry, "plugins", parts)
    # One answer is kept for the process: this test has another.
    questions.cache_clear()
    findings = tuple(
        replace(one, cell=replace(one.cell, question=WeatherQuestion.name))
        for one in small.findings
    )
    yield replace(small, findings=findings)
    questions.cache_clear()


def test_every_built_in_question_has_pages() -> None:
    assert PAGES.plugins().keys() == QUESTIONS.plugins().keys()
    assert all(pages_of(name).question == question for name, question in questions().items())


def test_a_question_without_pages_is_described_by_its_score_title(outside: Audit) -> None:
    threat_result = with_verdicts(outside).arm_results[0].threat_results[0]
    first, best, gain, last = (
        one.replace("\u00a0", " ") for one in threat_sentences(threat_result)
    )
    # l1 of 0.20 and 0.04; guessing 1.0 and 0.6.
    assert first.startswith(
        "The server cannot be judged on each client's local weather: the question states no "
        "pairings to compare its claims with; the best attack is at Degrees off 0.12 K (95 % "
    )
    assert gain.startswith("Gain of the strongest attack over guessing (degrees off): 0.68 K")
    assert best.startswith("Best result: client 1, 0.04")
    assert last.startswith("Attack: decaf, the only one that ran.")


def test_a_question_without_pages_has_a_section_and_a_term(outside: Audit) -> None:
    told = render_page(with_verdicts(outside))
    assert isinstance(pages_of(WeatherQuestion.name), DefaultQuestionPages)
    assert '<h2 id="question-local_weather-title">Local weather</h2>' in told
    assert "For local weather: degrees off." in told
    assert "<dt>Degrees off</dt>" in told
    assert "&lt;b&gt;nobody" in told
    assert "label shares" not in told


def test_a_question_without_pages_says_why_nothing_was_measured(outside: Audit) -> None:
    pages = pages_of(WeatherQuestion.name)
    threat_result = with_verdicts(outside).arm_results[0].threat_results[0]
    assert "Degrees off" in pages.unmeasured_sentence(threat_result)
    assert "Degrees off" in pages.unmeasured_reason()
