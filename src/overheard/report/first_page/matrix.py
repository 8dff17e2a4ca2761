"""The matrix of questions and observers in each arm: what leaks to whom, and how surely."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from overheard.core.parties import Party
from overheard.drawing.question_pages import QuestionPages
from overheard.findings.names import make_printable, name_observers, name_other_clients
from overheard.findings.number_format import NO_NUMBER
from overheard.findings.threat_results import ArmResult, ThreatResult
from overheard.findings.threat_verdict import TargetKind
from overheard.report.defense_effects import utility_words
from overheard.report.first_page.gain_bar import GainBar, gain_bar
from overheard.report.page_registry import pages_of
from overheard.report.refusals import why_refused
from overheard.report.verdict_sentences import (
    badge_of,
    chance_words,
    guess_words,
    is_almost_exact,
    margin_text,
)

ARMS_IN_A_PART = 4
"""Most columns of a part of the matrix, so that it fits on paper."""

Key = tuple[str, TargetKind, tuple[Party, ...]]
"""Question, kind of target and observers."""

UNDEFENDED = "no defenses"

UNKNOWN_DEFENSES = "the recording does not tell which defenses were in force"


@final
@dataclass(frozen=True, slots=True)
class MatrixCell:
    """What one group of observers learns about one question in one arm.

    Args:
        badge: the verdict in a few words.
        style: the verdict as the name of a style sheet's class.
        effect: what the best attack achieves; "" = nothing was measured.
        guess: what an uninformed guess achieves; "" = there is none.
        surety: how sure this is, or why nothing was measured.
        bar: the gain over guessing, to be drawn; None = nothing can be drawn.

    """

    badge: str
    style: str
    effect: str
    guess: str
    surety: str
    bar: GainBar | None = None

    @property
    def text(self) -> str:
        """All of it as one text."""
        return ". ".join(filter(None, (self.badge, self.effect, self.guess, self.surety)))

    @property
    def is_empty(self) -> bool:
        """Whether no score is known, so that an empty bar is drawn."""
        return self.style in ("unmeasured", "unchecked")


@final
@dataclass(frozen=True, slots=True)
class MatrixRow:
    """What one group of observers learns about one question, arm by arm.

    Args:
        question: the question in plain words.
        about: whom it is about.
        observers: who observes.
        cells: one for each arm; None = these observers were not asked in it.

    """

    question: str
    about: str
    observers: str
    cells: tuple[MatrixCell | None, ...]


@final
@dataclass(frozen=True, slots=True)
class ArmHead:
    """The head of an arm's column.

    Args:
        name: name of the arm.
        defenses: what is in force.
        utility: what the final model does, such as "is 83 % accurate"; "" = not measured.

    """

    name: str
    defenses: str
    utility: str


@final
@dataclass(frozen=True, slots=True)
class Matrix:
    """A row for each question and group of observers, and a column for each arm."""

    arms: tuple[ArmHead, ...]
    rows: tuple[MatrixRow, ...]


def make_matrices(arm_results: Sequence[ArmResult]) -> tuple[Matrix, ...]:
    """Return the matrix of all arms, in parts of `ARMS_IN_A_PART` columns at most."""
    found = dict.fromkeys(_key(one) for arm in arm_results for one in arm.threat_results)
    by_question = list(dict.fromkeys(question for question, _, _ in found))
    keys = sorted(found, key=lambda key: by_question.index(key[0]))
    return tuple(
        Matrix(tuple(map(_head, arms)), tuple(_row(arms, key) for key in keys))
        for begin in range(0, len(arm_results), ARMS_IN_A_PART)
        for arms in [arm_results[begin : begin + ARMS_IN_A_PART]]
    )


def _key(threat_result: ThreatResult) -> Key:
    return threat_result.question, threat_result.target_kind, threat_result.observers


def _head(arm: ArmResult) -> ArmHead:
    return ArmHead(make_printable(arm.name), name_defenses(arm), utility_words(arm))


def name_defenses(arm: ArmResult) -> str:
    """Return the defenses of an arm without their settings, or that none is known."""
    names = [one.settings.partition("(")[0] for one in arm.runs[0].defenses]
    return ", ".join(map(make_printable, names)) if names else describe_defenses(arm)


def describe_defenses(arm: ArmResult) -> str:
    """Return the defenses of an arm, or that none is known."""
    run = arm.runs[0]
    if run.defenses:
        return "; ".join(make_printable(one.settings) for one in run.defenses)
    return UNDEFENDED if run.are_defenses_known else UNKNOWN_DEFENSES


def describe_question(question: str) -> str:
    """Return a question in plain words."""
    name = _capitalised(make_printable(question).replace("_", " "))
    return pages_of(question).plain_question or name


def describe_observers(observers: Sequence[Party]) -> str:
    """Return observers as the first words of a row."""
    return _capitalised(name_observers(observers))


def _row(arms: Sequence[ArmResult], key: Key) -> MatrixRow:
    question, kind, observers = key
    pages = pages_of(question)
    found = [{_key(one): one for one in arm.threat_results}.get(key) for arm in arms]
    about = "each client" if kind == "clients" else name_other_clients(observers)
    return MatrixRow(
        describe_question(question),
        about,
        describe_observers(observers),
        tuple(None if one is None else _cell(one, pages) for one in found),
    )


def _cell(threat_result: ThreatResult, pages: QuestionPages) -> MatrixCell:
    judgement = threat_result.judgement
    effect = guess = ""
    if threat_result.attack_results:
        row = threat_result.attack_results[0].headline_row
        effect = _capitalised(pages.headline_statement(row, "").failure)
        guess = _capitalised(guess_words(threat_result, pages))
    return MatrixCell(
        badge_of(judgement),
        threat_result.verdict.replace(" ", "-"),
        effect,
        guess,
        _surety(threat_result, pages),
        gain_bar(threat_result),
    )


def _surety(threat_result: ThreatResult, pages: QuestionPages) -> str:
    judgement = threat_result.judgement
    if is_almost_exact(threat_result):
        return f"Almost exact, but {chance_words(threat_result)}."
    match judgement.verdict:
        case "unmeasured":
            if threat_result.attacks_run:
                return "Attacks ran, but what they claim could not be scored."
            why = why_refused(threat_result.refusals)
            return f"No attack could run. {why}" if why else "No attack could run."
        case "unchecked":
            return "Attacks state something. Nobody could check whether it is right."
        case "not enough to judge":
            head = "Not judged" if judgement.withheld else "Too few to judge"
            return f"{head}: {make_printable(judgement.why)}."
    return _gain_words(threat_result, pages)


def _gain_words(threat_result: ThreatResult, pages: QuestionPages) -> str:
    """Return the gain over a guess, and what it means for the verdict."""
    judgement = threat_result.judgement
    parts = []
    if judgement.gain is not None:
        measure = pages.question.measure(threat_result.attack_results[0].headline)
        span = measure.format_gain_interval(judgement.gain)
        interval = "" if span == NO_NUMBER else f" (95 % sure: {span})"
        value = measure.format(judgement.gain.mean)
        parts.append(f"Gain over guessing {value}{interval}.")
    margin = margin_text(judgement, pages)
    match judgement.verdict:
        case "leaks" if judgement.p_value is not None:
            parts.append(f"By chance: {_per_thousand(judgement.p_value)}.")
        case "no leak above margin" if margin != NO_NUMBER:
            parts.append(f"Below the margin of {margin}.")
        case "nothing to read" if margin != NO_NUMBER:
            parts.append(f"Not even a perfect claim gains the margin of {margin}.")
        case "inconclusive" if margin != NO_NUMBER:
            parts.append(f"It may exceed the margin of {margin}.")
    return " ".join(parts)


def _per_thousand(p_value: float) -> str:
    """Return a probability as a count of 1,000.

    >>> _per_thousand(0.005), _per_thousand(0.00012)
    ('5 in 1,000', '0.12 in 1,000')
    """
    return f"{1000 * p_value:.2g} in 1,000"


def _capitalised(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
