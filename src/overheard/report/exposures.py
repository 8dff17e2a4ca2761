"""Gathers an audit's findings by who asked what in which arm, the best attack first."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Literal

from overheard import scoring
from overheard.audit.finding import ArmRun, Audit, Finding, Refusal
from overheard.audit.row import Row
from overheard.audit.summary import summarise
from overheard.core.discover import discover
from overheard.core.parties import COHORT, Party
from overheard.core.scorer import Scorer
from overheard.core.seeds import Seed
from overheard.report.names import all_others, shown, together

About = Literal["clients", "cohort"]

Verdict = Literal["leaks", "unclear", "silent", "unjudged", "unchecked", "unmeasured"]
"""leaks: better than guessing; unclear: not told apart from it; silent: no better than it;
unjudged: no guess or no interval to hold it against; unchecked: claims were made, and there is
no truth to hold them against; unmeasured: no attack could run."""


@dataclass(frozen=True, slots=True)
class Case:
    """What one attack of one group of observers got in one arm.

    Args:
        attack: its name in the plan.
        headline: name of the score by which its question is told.
        whole: its rows by score, for the most rounds that were heard together.
        by_round: the headline's row for each round that was heard alone.
        findings: those behind `whole`.

    """

    attack: str
    headline: str
    whole: Mapping[str, Row]
    by_round: Mapping[int, Row]
    findings: tuple[Finding, ...]

    @property
    def row(self) -> Row:
        """The headline over the most rounds."""
        return self.whole[self.headline]


@dataclass(frozen=True, slots=True)
class Exposure:
    """What a group of observers could get out of one arm about one question.

    Args:
        arm: its name.
        observers: who pooled what they read.
        question: name of its scorer.
        about: whom: each client, or all of them taken as one.
        cases: one an attack for which there is the question's headline, the best first.
        refusals: of attacks that could not run.
        rows: of all attacks, scores and rounds heard.
        claims: of all attacks over the most rounds heard, where no truth is known.

    """

    arm: str
    observers: tuple[Party, ...]
    question: str
    about: About
    cases: tuple[Case, ...]
    refusals: tuple[Refusal, ...]
    rows: tuple[Row, ...]
    claims: tuple[Finding, ...] = ()

    @property
    def title(self) -> str:
        """Who asks what about whom; the same in every arm."""
        who = together(self.observers)
        whom = all_others(self.observers) if self.about == "cohort" else "each client"
        what = shown(self.question).replace("_", " ")
        return f"{who[0].upper()}{who[1:]}, about {whom}: {what}"

    @property
    def verdict(self) -> Verdict:
        """What the best attack amounts to, by the interval of its gain over a blind guess."""
        if not self.cases:
            return "unchecked" if self.claims else "unmeasured"
        gain = self.cases[0].row.gain
        if gain is None or gain.low is None or gain.high is None or not isfinite(gain.mean):
            return "unjudged"
        if gain.low > 0:
            return "leaks"
        return "unclear" if gain.high > 0 else "silent"


@dataclass(frozen=True, slots=True)
class Arm:
    """One variant of the federation over all its seeds, and what it gave away.

    Args:
        name: of the arm.
        runs: as planned, without the controls.
        exposures: one a group of observers, question and whom they ask about.

    """

    name: str
    runs: tuple[ArmRun, ...]
    exposures: tuple[Exposure, ...]

    @property
    def is_bare(self) -> bool:
        """No defense was in force."""
        return not self.runs[0].defenses

    @property
    def accuracy(self) -> float | None:
        """Of the last global model that was tested, mean over seeds; None = not measured."""
        by_round = self.accuracy_by_round
        return by_round[max(by_round)] if by_round else None

    @property
    def accuracy_by_round(self) -> Mapping[int, float]:
        """Of the global model at each round's broadcast, mean over the seeds that tested it."""
        rounds = sorted({number for run in self.runs for number in run.accuracy})
        held = {
            number: [run.accuracy[number] for run in self.runs if number in run.accuracy]
            for number in rounds
        }
        return {number: sum(values) / len(values) for number, values in held.items()}


def arms(audit: Audit, seed: Seed) -> tuple[Arm, ...]:
    """The audit's arms in its order, each with what it gave away.

    Args:
        audit: all that was found.
        seed: of the bootstrap behind the intervals.

    """
    findings: dict[_Threat, list[Finding]] = defaultdict(list)
    refusals: dict[_Threat, list[Refusal]] = defaultdict(list)
    for finding in audit.findings:
        findings[_threat(finding)].append(finding)
    for refusal in audit.refusals:
        refusals[_threat(refusal)].append(refusal)
    threats = list(dict.fromkeys([*findings, *refusals]))
    order = list(dict.fromkeys(map(_asked, threats)))  # alike in every arm
    exposures = [
        _exposure(threat, findings.get(threat, ()), refusals.get(threat, ()), seed)
        for threat in sorted(threats, key=lambda threat: order.index(_asked(threat)))
    ]
    return tuple(
        Arm(
            name,
            tuple(run for run in audit.arms if run.arm == name and not run.is_control),
            tuple(exposure for exposure in exposures if exposure.arm == name),
        )
        for name in dict.fromkeys(run.arm for run in audit.arms)
    )


def bare_arm(every: Sequence[Arm]) -> Arm | None:
    """The arm without defenses, which the others are held against."""
    return next((arm for arm in every if arm.is_bare), None)


def by_threat(every: Sequence[Arm]) -> Mapping[str, Sequence[Exposure]]:
    """The exposures of all arms by who asked what, if anything about it was measured."""
    gathered: dict[str, list[Exposure]] = {}
    for exposure in (exposure for arm in every for exposure in arm.exposures):
        gathered.setdefault(exposure.title, []).append(exposure)
    return {
        asked: exposures
        for asked, exposures in gathered.items()
        if any(exposure.cases for exposure in exposures)
    }


def headline_row(exposures: Sequence[Exposure]) -> Row:
    """A headline of these exposures, which share a question; one of them was measured."""
    return next(exposure.cases[0].row for exposure in exposures if exposure.cases)


@dataclass(frozen=True, slots=True)
class _Threat:
    arm: str
    observers: tuple[Party, ...]
    question: str
    about: About


def _asked(threat: _Threat) -> tuple[tuple[Party, ...], str, About]:
    return threat.observers, threat.question, threat.about


def _threat(found: Finding | Refusal) -> _Threat:
    cell = found.cell
    about: About = "cohort" if found.target == COHORT else "clients"
    return _Threat(cell.arm, cell.observers, cell.question, about)


def _exposure(
    threat: _Threat, findings: Sequence[Finding], refusals: Sequence[Refusal], seed: Seed
) -> Exposure:
    rows = summarise(findings, seed)
    cases = [
        _case(
            attack,
            [row for row in rows if row.attack == attack],
            [finding for finding in findings if finding.cell.attack == attack],
            threat.question,
        )
        for attack in dict.fromkeys(row.attack for row in rows)
    ]
    return Exposure(
        threat.arm,
        threat.observers,
        threat.question,
        threat.about,
        # Of a shift there is no headline where no control ran beside it.
        tuple(sorted((case for case in cases if case.headline in case.whole), key=_error)),
        tuple(refusals),
        rows,
        _unchecked(findings),
    )


def _unchecked(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Of each attack the claims over the most rounds, where there is no truth."""
    bare = [finding for finding in findings if not finding.is_checked]
    longest = dict[str, tuple[int, ...]]()
    for finding in bare:
        attack, rounds = finding.cell.attack, finding.cell.rounds
        known = longest.get(attack, ())
        longest[attack] = max(known, rounds, key=lambda held: (len(held), held))
    return tuple(one for one in bare if one.cell.rounds == longest[one.cell.attack])


def _case(attack: str, rows: Sequence[Row], findings: Sequence[Finding], question: str) -> Case:
    scorers = discover(scoring, Scorer)  # type: ignore[type-abstract]
    headline = scorers[question].headline
    longest = max((row.rounds for row in rows), key=lambda rounds: (len(rounds), rounds))
    return Case(
        attack,
        headline,
        {row.score: row for row in rows if row.rounds == longest},
        {
            row.rounds[0]: row
            for row in sorted(rows, key=lambda row: row.rounds)
            if row.score == headline and len(row.rounds) == 1
        },
        tuple(finding for finding in findings if finding.cell.rounds == longest),
    )


def _error(case: Case) -> float:
    """Less = reads more, whatever the score's direction; a figure that is none comes last."""
    mean = case.row.value.mean
    if not isfinite(mean):
        return inf
    return mean if case.row.better == "lower" else -mean
