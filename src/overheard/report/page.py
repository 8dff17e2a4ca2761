"""Lays the report out as one page that works offline and without scripts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from overheard.drawing.plates import Table
from overheard.epsilon.epsilon import epsilon_lines
from overheard.epsilon.table import epsilon_table, epsilon_words
from overheard.findings.exposures import Arm, Exposure, Verdict
from overheard.findings.figures import (
    NO_FIGURE,
    Measure,
    data_size,
    digits,
    direction,
    duration,
    measure,
    percent,
    rounds_heard,
)
from overheard.findings.finding import Audit
from overheard.findings.names import shown, together
from overheard.findings.row import Row
from overheard.questions.label_shares.pages.intervals import intervals_tables
from overheard.questions.label_shares.pages.shares_plates import shares_plates
from overheard.questions.membership.scorer import MembershipScorer
from overheard.questions.shift.pages.detection_tables import detection_tables
from overheard.questions.shift.pages.timeline_plates import timeline_plates
from overheard.report.arms_plates import arms_plates
from overheard.report.changes import changes
from overheard.report.claims import claims_plates, claims_tables
from overheard.report.costs import costs_of, costs_table
from overheard.report.frontier_plates import frontier_plates
from overheard.report.identity_plates import identity_plates
from overheard.report.identity_tables import identity_tables
from overheard.report.limits import limit_words
from overheard.report.refusals import grouped
from overheard.report.rounds_plates import accuracy_plate, rounds_plates
from overheard.report.template import template
from overheard.report.words import BADGES, exposure_words, told_row

_OWN_SCALE = Measure("", "", 1.0)


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
    return template("page.html.j2").render(
        title=shown(audit.title),
        subject=shown(audit.subject),
        arms=[_arm_words(arm) for arm in every],
        threats=list(dict.fromkeys(held.title for arm in every for held in arm.exposures)),
        has_membership=any(
            held.question == MembershipScorer.name for arm in every for held in arm.exposures
        ),
        changes=changes(every),
        limits=limit_words(audit, every),
        costs=costs_table(every),
        side_by_side=arms_plates(every),
        defenses=_defenses(every),
        epsilons=epsilon_table(epsilons),
        broken=epsilon_words(epsilons),
        shares=shares_plates(every, audit.class_names),
        intervals=intervals_tables(every),
        detection=detection_tables(every),
        timelines=timeline_plates(audit, every),
        identities=identity_tables(every),
        recognised=identity_plates(every),
        frontiers=frontier_plates(every),
        unmeasured=[
            f"{shown(arm.name)} · {held.title}"
            for arm in every
            for held in arm.exposures
            if held.verdict == "unmeasured"
        ],
        claims=claims_plates(every, audit.class_names),
        unchecked=[answer for arm in every for answer in claims_tables(arm)],
        by_round=rounds_plates(every),
        accuracy=accuracy_plate(every),
        scores=_scores([row for arm in every for held in arm.exposures for row in held.rows]),
        refusals=_refusals(audit),
        plan=_lines(audit.plan),
        versions=_versions(audit),
    )


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
    row = told_row(exposure.cases[0]) if exposure.cases else None
    told = _OWN_SCALE if row is None else measure(row.score)
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


def _scores(rows: Sequence[Row]) -> Table:
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
        tuple(_score_line(row) for row in rows),
        7,
    )


def _score_line(row: Row) -> tuple[str, ...]:
    return (
        shown(row.arm),
        together(row.observers),
        shown(row.attack),
        shown(row.question),
        rounds_heard(row.rounds),
        shown(row.score),
        direction(row.better),
        digits(row.value.mean),
        _OWN_SCALE.span(row.value),
        _named(row.blinds),
        _named(row.references),
        digits(None if row.gain is None else row.gain.mean),
        _OWN_SCALE.span(row.gain),
        str(row.targets),
        str(row.seeds),
    )


def _named(values: Mapping[str, float]) -> str:
    return "; ".join(f"{shown(name)} {digits(value)}" for name, value in values.items()) or (
        NO_FIGURE
    )


def _refusals(audit: Audit) -> Table:
    return Table(
        "Not measured, and what was missing",
        ("Arm", "Observers", "Attack", "Question", "Missing", "Targets", "Answers not given"),
        tuple(
            (
                shown(group.arm),
                together(group.observers),
                shown(group.attack),
                shown(group.question),
                "; ".join(map(shown, group.missing)),
                str(group.targets),
                str(group.answers),
            )
            for group in grouped(audit.refusals)
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
