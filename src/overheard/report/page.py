"""Lays the report out as one page that works offline and without scripts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from overheard.drawing.pages import Pages
from overheard.drawing.plates import Table
from overheard.drawing.sections import (
    Section,
    SectionBlock,
    Term,
    merge_sections,
)
from overheard.epsilon.epsilon import EpsilonLine, epsilon_lines
from overheard.epsilon.table import epsilon_blocks, epsilon_terms, epsilon_words
from overheard.findings.costs import costs_of
from overheard.findings.exposures import Arm, Exposure, Verdict, arms_asking
from overheard.findings.figures import (
    NO_FIGURE,
    OWN_SCALE,
    data_size,
    digits,
    direction,
    duration,
    percent,
    rounds_heard,
)
from overheard.findings.finding import Audit
from overheard.findings.names import shown, together
from overheard.findings.row import Row
from overheard.report.arms_plates import arms_plates
from overheard.report.changes import changes
from overheard.report.costs import costs_table
from overheard.report.frontier_plates import frontier_plates
from overheard.report.glossary import COST_TERMS, TERMS
from overheard.report.limits import limit_words
from overheard.report.question_pages import pages_of
from overheard.report.refusals import grouped
from overheard.report.rounds_plates import accuracy_plate, rounds_plates
from overheard.report.template import template
from overheard.report.words import BADGES, exposure_words


@dataclass(frozen=True, slots=True)
class AnswerWords:
    """What one group of observers gets out of an arm, in words."""

    asked: str
    verdict: Verdict
    badge: str
    value: str
    guess: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArmWords:
    """An arm in words; what was not measured is a dash."""

    name: str
    defenses: str
    accuracy: str
    sent: str
    time: str
    answers: tuple[AnswerWords, ...]

    @property
    def facts(self) -> tuple[str, ...]:
        """What was measured of the arm itself."""
        told = {"accuracy": self.accuracy, "sent": self.sent, "time": self.time}
        return tuple(f"{what} {value}" for what, value in told.items() if value != NO_FIGURE)


def page(audit: Audit, every: Sequence[Arm]) -> str:
    """The whole report as HTML.

    Every name is escaped by the template, and every control character spelled out before.
    """
    epsilons = epsilon_lines(audit)
    asked = [pages_of(name) for name in _questions(every)]
    return template("page.html.j2").render(
        title=shown(audit.title),
        subject=shown(audit.subject),
        arms=[_arm_words(arm) for arm in every],
        threats=list(dict.fromkeys(held.title for arm in every for held in arm.exposures)),
        intros=[said for pages in asked if (said := pages.intro())],
        changes=changes(every),
        limits=limit_words(audit, every),
        costs=costs_table(every),
        side_by_side=arms_plates(every),
        defenses=_defenses(every),
        epsilons=epsilon_blocks(epsilons),
        broken=epsilon_words(epsilons),
        sections=_sections(audit, every),
        claims=_claims(audit, every),
        frontiers=frontier_plates(every),
        by_round=rounds_plates(every),
        accuracy=accuracy_plate(every),
        scores=_scores(every),
        refusals=_refusals(every),
        terms=_terms(asked, epsilons),
        plan=_lines(audit.plan),
        versions=_versions(audit),
    )


def _questions(every: Sequence[Arm]) -> Sequence[str]:
    """The names of all questions that were asked, in the order of the exposures."""
    return list(dict.fromkeys(held.question for arm in every for held in arm.exposures))


def _sections(audit: Audit, every: Sequence[Arm]) -> tuple[Section, ...]:
    """What is shown of each question alone."""
    return merge_sections(
        section
        for question in _questions(every)
        for section in _of_question(question, audit, arms_asking(every, question))
    )


def _of_question(question: str, audit: Audit, every: Sequence[Arm]) -> Sequence[Section]:
    """The sections of a question; at the end of the last, where nothing was measured."""
    sections = list(pages_of(question).sections(audit, every))
    unmeasured = tuple(
        f"Not drawn, since not measured: {shown(arm.name)} · {held.title}."
        for arm in every
        for held in arm.exposures
        if held.verdict == "unmeasured"
    )
    if sections and unmeasured:
        last = sections[-1]
        sections[-1] = replace(last, blocks=(*last.blocks, SectionBlock(paragraphs=unmeasured)))
    return sections


def _claims(audit: Audit, every: Sequence[Arm]) -> Sequence[SectionBlock]:
    """What is claimed and was not checked, question by question."""
    return [
        block
        for question in _questions(every)
        for block in pages_of(question).claims(audit, arms_asking(every, question))
    ]


def _terms(asked: Sequence[Pages], epsilons: Sequence[EpsilonLine]) -> Sequence[Term]:
    """Every term once, those of the questions amid those of every report."""
    own = (term for pages in asked for term in pages.terms())
    every = (*TERMS, *own, *epsilon_terms(epsilons), *COST_TERMS)
    return list({term.name: term for term in every}.values())


def _lines(text: str) -> str:
    return "\n".join(map(shown, text.splitlines()))


def _arm_words(arm: Arm) -> ArmWords:
    costs = costs_of(arm)
    return ArmWords(
        shown(arm.name),
        "; ".join(shown(defense.settings) for defense in arm.runs[0].defenses),
        percent(arm.accuracy),
        data_size(costs.sent),
        duration(costs.wall),
        tuple(map(_answer, arm.exposures)),
    )


def _answer(exposure: Exposure) -> AnswerWords:
    pages = pages_of(exposure.question)
    row = pages.told_row(exposure.cases[0]) if exposure.cases else None
    told = OWN_SCALE if row is None else pages.question.measure(row.score)
    return AnswerWords(
        exposure.title,
        exposure.verdict,
        BADGES[exposure.verdict],
        told.tell(None if row is None else row.value.mean),
        told.tell(None if row is None else row.blind),
        exposure_words(exposure),
    )


def _defenses(every: Sequence[Arm]) -> Table:
    return Table(
        "Defenses: where they act, who could leave them out unnoticed, what they promise",
        ("Arm", "Defense", "Enforced at", "Could be switched off by", "Formal promise"),
        tuple(
            (
                shown(arm.name),
                shown(defense.settings),
                shown(defense.enforced_at),
                shown(defense.switched_off_by),
                shown(defense.promise),
            )
            for arm in every
            for defense in arm.runs[0].defenses
        ),
        5,
    )


def _scores(every: Sequence[Arm]) -> Table:
    return Table(
        "Every figure of merit, on its own scale",
        (
            "Arm",
            "Observers",
            "Attack",
            "Question",
            "Rounds",
            "Score",
            "Direction",
            "Value",
            "95 % interval",
            "Blind guesses",
            "Told guesses",
            "Gain",
            "95 % interval",
            "Targets",
            "Runs",
        ),
        tuple(
            _score_line(row, held.labels[row.attack])
            for arm in every
            for held in arm.exposures
            for row in held.rows
        ),
        7,
    )


def _score_line(row: Row, label: str) -> tuple[str, ...]:
    return (
        shown(row.arm),
        together(row.observers),
        shown(label),
        shown(row.question),
        rounds_heard(row.rounds),
        shown(row.score),
        direction(row.better),
        digits(row.value.mean),
        OWN_SCALE.span(row.value),
        _named(row.blinds),
        _named(row.references),
        digits(None if row.gain is None else row.gain.mean),
        OWN_SCALE.span(row.gain),
        str(row.targets),
        str(row.seeds),
    )


def _named(values: Mapping[str, float]) -> str:
    return "; ".join(f"{shown(name)} {digits(value)}" for name, value in values.items()) or (
        NO_FIGURE
    )


def _refusals(every: Sequence[Arm]) -> Table:
    return Table(
        "Not measured, and what was missing",
        ("Arm", "Observers", "Attack", "Question", "Missing", "Targets", "Answers not given"),
        tuple(
            (
                shown(group.arm),
                together(group.observers),
                shown(group.label),
                shown(group.question),
                "; ".join(map(shown, group.missing)),
                str(group.targets),
                str(group.answers),
            )
            for group in grouped(every)
        ),
        5,
    )


def _versions(audit: Audit) -> Table:
    return Table(
        "Software that took part",
        ("Name", "Version"),
        tuple((shown(name), shown(version)) for name, version in audit.versions.items()),
        2,
    )
