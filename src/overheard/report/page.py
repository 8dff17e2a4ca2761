"""The report as one page, which works offline, with scripts and without."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import final

from overheard.core.failures import HOW_TO_REPORT
from overheard.drawing.figures import ReportTable
from overheard.drawing.question_pages import QuestionPages
from overheard.drawing.sections import (
    Section,
    SectionBlock,
    Term,
    merge_sections,
)
from overheard.epsilon.client_estimate_table import client_estimate_blocks
from overheard.epsilon.epsilon_results import EpsilonResult, epsilon_results
from overheard.epsilon.mechanism_table import mechanism_blocks
from overheard.epsilon.table import epsilon_blocks, epsilon_terms
from overheard.findings.audit import Audit
from overheard.findings.costs import Costs, arm_costs
from overheard.findings.names import make_printable, name_observers
from overheard.findings.number_format import (
    BARE_NUMBER,
    NO_NUMBER,
    direction_label,
    format_bytes,
    format_duration,
    format_number,
    format_percent,
    format_rounds,
)
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_results import (
    ArmResult,
    ThreatResult,
    find_undefended_arm,
    select_question,
)
from overheard.findings.threat_verdict import Verdict
from overheard.report.arm_figures import arm_figures
from overheard.report.defense_effects import describe_defense_effects
from overheard.report.doctor_section import criticism_rows, doctor_blocks
from overheard.report.evidence.standards import NO_IDENTIFIER, standards_of
from overheard.report.first_page.first_page import (
    MISTRUST,
    NO_METADATA,
    FirstPage,
    make_first_page,
)
from overheard.report.first_page.gain_bar import BAR_WORDS, KEY_BAR, place
from overheard.report.first_page.matrix import (
    describe_defenses,
    describe_observers,
    describe_question,
)
from overheard.report.frontier_figures import frontier_figures
from overheard.report.glossary import COST_TERMS, TERMS
from overheard.report.page_parts import PageParts
from overheard.report.page_registry import pages_of
from overheard.report.refusals import group_refusals
from overheard.report.round_figures import accuracy_figure, round_figures
from overheard.report.sums_section import sums_blocks
from overheard.report.template import load_template
from overheard.report.terms import GLOSSARY_ADDRESS
from overheard.report.threat_sentences import threat_sentences
from overheard.report.verdict_sentences import badge_of


@dataclass(frozen=True, slots=True)
class ThreatSummary:
    """The result of one threat in an arm, in words."""

    title: str
    question: str
    observers: str
    verdict: Verdict
    badge: str
    sentences: tuple[str, ...]

    @property
    def style(self) -> str:
        """The verdict as the name of a style sheet's class."""
        return self.verdict.replace(" ", "-")


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """The results of an arm, in words; a dash = not measured."""

    name: str
    defenses: str
    utility: str
    accuracy: str
    sent: str
    time: str
    threats: tuple[ThreatSummary, ...]

    @property
    def facts(self) -> tuple[str, ...]:
        """The measured costs of the arm."""
        costs = {self.utility: self.accuracy, "sent": self.sent, "time": self.time}
        return tuple(f"{name} {value}" for name, value in costs.items() if value != NO_NUMBER)


@final
@dataclass(frozen=True, slots=True)
class ReleasedParts:
    """What the page of a release says although its audit has no claims.

    Args:
        broken_claims: sentences on promises of differential privacy that do not hold.
        epsilons: sentences on promised, recomputed and measured epsilon.
        epsilon_blocks: the table on epsilon.
        left_out: what the release leaves out, and why, in sentences.
        alarms: sentences on critical faults in the differential privacy of arms.

    """

    broken_claims: tuple[str, ...]
    epsilons: tuple[str, ...]
    epsilon_blocks: tuple[SectionBlock, ...]
    left_out: tuple[str, ...]
    alarms: tuple[str, ...] = ()


def render_page(audit: Audit, digest: str = "", released: ReleasedParts | None = None) -> str:
    """Return the whole report as HTML, with all names and control characters escaped.

    Args:
        audit: the audit.
        digest: the SHA-256 of `findings.json`, which the page states; "" = not stated.
        released: what to say of a release, whose page shows no claims; None = it is none.

    """
    arm_results, parts = audit.arm_results, PageParts()
    part = parts.make
    epsilons = part("differential privacy", lambda: epsilon_results(audit))
    first = make_first_page(audit, epsilons, digest, parts)
    blocks = part(
        "promises of epsilon",
        lambda: (
            *doctor_blocks(tuple(criticism_rows(audit))),
            *mechanism_blocks(epsilons),
            *epsilon_blocks(epsilons),
            *client_estimate_blocks(epsilons),
            *sums_blocks(audit.arms),
        ),
    )
    if released is not None:
        first = _of_release(first, released)
        blocks = released.epsilon_blocks
    question_pages = [pages_of(name) for name in _questions(arm_results)]
    return load_template("page.html.j2").render(
        title=make_printable(audit.title),
        is_recorded=audit.is_recorded,
        made_on=make_printable(audit.made_on),
        no_metadata=NO_METADATA,
        first=first,
        has_bars=_has_bars(first),
        key_bar=KEY_BAR,
        bar_words=BAR_WORDS,
        place=place,
        left_out=() if released is None else released.left_out,
        is_release=released is not None,
        arms=part("results in sentences", lambda: map(_arm_summary, arm_results)),
        changes=part("changes", lambda: describe_defense_effects(arm_results)),
        costs=part("costs", lambda: [cost_table(arm_results)]),
        side_by_side=part("arms side by side", lambda: arm_figures(arm_results)),
        defenses=_defenses(arm_results),
        epsilons=blocks,
        # Sections of questions, and claims, show single clients.
        sections=_sections(audit, parts) if released is None else (),
        claims=part("claims, not checked", lambda: _claims(audit)) if released is None else (),
        frontiers=part("leakage and utility", lambda: frontier_figures(arm_results)),
        by_round=part("leakage by round", lambda: round_figures(arm_results)),
        accuracy=part("utility by round", lambda: [accuracy_figure(arm_results)]),
        utility=arm_results[0].utility if arm_results else "accuracy",
        scores=_scores(arm_results),
        refusals=_refusals(arm_results),
        terms=part("terms", lambda: _terms(question_pages, epsilons)),
        glossary_address=GLOSSARY_ADDRESS,
        plan=_escape_lines(audit.plan),
        standards=_standards(arm_results),
        versions=_versions(audit),
        # Last, as the parts above add to it.
        failures=tuple(map(make_printable, parts.failures)),
        how_to_report=HOW_TO_REPORT,
    )


def _questions(arm_results: Sequence[ArmResult]) -> Sequence[str]:
    """Return the names of all questions, in the order of the threats."""
    return list(
        dict.fromkeys(one.question for arm in arm_results for one in arm.threat_results)
    )


def _sections(audit: Audit, parts: PageParts) -> tuple[Section, ...]:
    """Return the sections that belong to single questions."""
    by_question = (
        parts.make(
            f"the section on {question.replace('_', ' ')}",
            partial(
                _question_sections,
                question,
                audit,
                select_question(audit.arm_results, question),
            ),
        )
        for question in _questions(audit.arm_results)
    )
    return merge_sections(section for sections in by_question for section in sections)


def _question_sections(
    question: str, audit: Audit, arm_results: Sequence[ArmResult]
) -> Sequence[Section]:
    """Return a question's sections; the last one ends with a list of unmeasured threats."""
    sections = list(pages_of(question).sections(audit, arm_results))
    unmeasured = tuple(
        f"Not shown, since not measured: {make_printable(arm.name)} · {threat_result.title}."
        for arm in arm_results
        for threat_result in arm.threat_results
        if threat_result.verdict == "unmeasured"
    )
    if sections and unmeasured:
        last = sections[-1]
        sections[-1] = replace(last, blocks=(*last.blocks, SectionBlock(paragraphs=unmeasured)))
    return sections


def _claims(audit: Audit) -> Sequence[SectionBlock]:
    """Return the unchecked claims, question by question."""
    return [
        block
        for question in _questions(audit.arm_results)
        for block in pages_of(question).claim_blocks(
            audit, select_question(audit.arm_results, question)
        )
    ]


def _terms(
    question_pages: Sequence[QuestionPages], epsilons: Sequence[EpsilonResult]
) -> Sequence[Term]:
    """Return every term once: those of all reports and those of the questions."""
    by_question = (term for pages in question_pages for term in pages.terms())
    terms = (*TERMS, *by_question, *epsilon_terms(epsilons), *COST_TERMS)
    return list({term.name: term for term in terms}.values())


def _escape_lines(text: str) -> str:
    return "\n".join(map(make_printable, text.splitlines()))


def _arm_summary(arm: ArmResult) -> ArmSummary:
    costs = arm_costs(arm)
    return ArmSummary(
        make_printable(arm.name),
        describe_defenses(arm),
        arm.utility,
        format_percent(arm.accuracy),
        format_bytes(costs.total_bytes),
        format_duration(costs.wall_seconds),
        tuple(map(_threat_summary, arm.threat_results)),
    )


def _threat_summary(threat_result: ThreatResult) -> ThreatSummary:
    return ThreatSummary(
        threat_result.title,
        describe_question(threat_result.question),
        describe_observers(threat_result.observers),
        threat_result.verdict,
        badge_of(threat_result.judgement),
        threat_sentences(threat_result),
    )


def _defenses(arm_results: Sequence[ArmResult]) -> ReportTable:
    return ReportTable(
        "Defenses: where they are enforced, who could switch them off, what they promise",
        ("Arm", "Defense", "Enforced at", "Could be switched off by", "Formal promise"),
        tuple(
            (
                make_printable(arm.name),
                make_printable(defense.settings),
                make_printable(defense.enforced_at),
                make_printable(defense.switched_off_by),
                make_printable(defense.promise),
            )
            for arm in arm_results
            for defense in arm.runs[0].defenses
        ),
        5,
    )


def _scores(arm_results: Sequence[ArmResult]) -> ReportTable:
    return ReportTable(
        "Every score, on its own scale",
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
            "Uninformed guesses",
            "Informed guesses and control",
            "Gain",
            "95 % interval",
            "Targets",
            "Runs",
        ),
        tuple(
            _score_row(row, threat_result.labels[row.attack])
            for arm in arm_results
            for threat_result in arm.threat_results
            for row in threat_result.rows
        ),
        7,
    )


def _score_row(row: ScoreRow, label: str) -> tuple[str, ...]:
    return (
        make_printable(row.arm),
        name_observers(row.observers),
        make_printable(label),
        make_printable(row.question),
        format_rounds(row.rounds),
        make_printable(row.score),
        direction_label(row.better),
        format_number(row.value.mean),
        BARE_NUMBER.format_interval(row.value),
        _named_values(row.uninformed),
        _named_values(row.references),
        format_number(None if row.gain is None else row.gain.mean),
        BARE_NUMBER.format_interval(row.gain),
        str(row.targets),
        str(row.seeds),
    )


def _named_values(values: Mapping[str, float]) -> str:
    return "; ".join(
        f"{make_printable(name)} {format_number(value)}" for name, value in values.items()
    ) or (NO_NUMBER)


def _refusals(arm_results: Sequence[ArmResult]) -> ReportTable:
    return ReportTable(
        "Attacks that could not run, and what was missing",
        ("Arm", "Observers", "Attack", "Question", "Missing", "Targets", "Claims not made"),
        tuple(
            (
                make_printable(group.arm),
                name_observers(group.observers),
                make_printable(group.label),
                make_printable(group.question),
                "; ".join(map(make_printable, group.missing)),
                str(group.targets),
                str(group.claims),
            )
            for group in group_refusals(arm_results)
        ),
        5,
    )


def _standards(arm_results: Sequence[ArmResult]) -> ReportTable:
    """Return the sections of standards that name each kind of finding."""
    kinds = dict.fromkeys(
        (one.question, one.target_kind) for arm in arm_results for one in arm.threat_results
    )
    return ReportTable(
        "Standards that name these kinds of findings; this is no statement of compliance",
        ("Question", "About", "Section", "Read", "Note"),
        tuple(
            (
                make_printable(question).replace("_", " "),
                entry.level,
                reference.name if reference else NO_IDENTIFIER,
                reference.reading_note if reference else "",
                entry.note,
            )
            for question, about in kinds
            for entry in [standards_of(question, about)]
            for reference in entry.references or (None,)
        ),
        5,
    )


def _versions(audit: Audit) -> ReportTable:
    return ReportTable(
        "Software versions",
        ("Name", "Version"),
        tuple(
            (make_printable(name), make_printable(version))
            for name, version in audit.versions.items()
        ),
        2,
    )


UNMEASURED = "not measured"


def cost_table(arm_results: Sequence[ArmResult]) -> ReportTable:
    """Return accuracy, bytes and time of each arm, as means over its runs."""
    bare = find_undefended_arm(arm_results)
    utility = arm_results[0].utility.capitalize() if arm_results else ""
    return ReportTable(
        "Cost of each arm, mean over runs",
        (
            "Arm",
            utility,
            f"{utility} lost, points",
            "Clients send",
            "Sent per client and round",
            "Server sends",
            "Received per client and round",
            "Time",
            "CPU time",
        ),
        tuple(
            (
                make_printable(arm.name),
                *_accuracy_cells(arm, bare),
                *_overhead_cells(arm_costs(arm)),
            )
            for arm in arm_results
        ),
        1,
    )


def _accuracy_cells(arm: ArmResult, bare: ArmResult | None) -> tuple[str, str]:
    if arm.accuracy is None:
        return (UNMEASURED, NO_NUMBER)
    if bare is None or bare.accuracy is None:
        return (format_percent(arm.accuracy), NO_NUMBER)
    return (format_percent(arm.accuracy), format_number(100 * (bare.accuracy - arm.accuracy)))


def _overhead_cells(costs: Costs) -> tuple[str, ...]:
    sizes = (costs.up, costs.up_per_client_round, costs.down, costs.down_per_client_round)
    times = (costs.wall_seconds, costs.core_seconds)
    return (
        *map(format_bytes, sizes),
        *(UNMEASURED if time is None else format_duration(time) for time in times),
    )


def _of_release(first: FirstPage, released: ReleasedParts) -> FirstPage:
    """Return the first page with the alarms and the epsilons of the release."""
    return replace(
        first,
        alarms=released.alarms,
        broken_claims=released.broken_claims,
        epsilons=released.epsilons,
        steps=(
            *((MISTRUST,) if released.broken_claims or released.alarms else ()),
            *first.steps,
        ),
    )


def _has_bars(first: FirstPage) -> bool:
    return any(
        cell is not None and cell.bar is not None
        for matrix in first.matrices
        for row in matrix.rows
        for cell in row.cells
    )
