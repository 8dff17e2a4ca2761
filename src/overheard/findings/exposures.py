"""What observers could get out of each arm, question by question."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Literal

from overheard.core.parties import Party
from overheard.findings.finding import ArmRun, Cell, Finding, Refusal
from overheard.findings.names import all_others, shown, together
from overheard.findings.row import Row

About = Literal["clients", "cohort"]

Verdict = Literal["leaks", "unclear", "silent", "unjudged", "unchecked", "unmeasured"]
"""leaks: better than guessing; unclear: not told apart from it; silent: no better than it;
unjudged: no guess or no interval to hold it against; unchecked: claims were made, and there is
no truth to hold them against; unmeasured: no attack could run."""


@dataclass(frozen=True, slots=True)
class Case:
    """What one attack of one group of observers got in one arm.

    Args:
        attack: its full name.
        label: what readers see: no other attack of the exposure is called so.
        is_adaptive: whether it adapts to the defenses of the arm.
        headline: name of the score by which its question is told.
        whole: its rows by score, for the most rounds that were heard together.
        by_round: the headline's row for each round that was heard alone.
        findings: those behind `whole`.

    """

    attack: str
    label: str
    is_adaptive: bool
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
        labels: what readers see of each attack, refused ones too, by its full name.

    """

    arm: str
    observers: tuple[Party, ...]
    question: str
    about: About
    cases: tuple[Case, ...]
    refusals: tuple[Refusal, ...]
    rows: tuple[Row, ...]
    claims: tuple[Finding, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

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


def arms_asking(every: Sequence[Arm], question: str) -> tuple[Arm, ...]:
    """The same arms, with what could be got out of them about one question alone."""
    return tuple(
        replace(arm, exposures=tuple(one for one in arm.exposures if one.question == question))
        for arm in every
    )


def reader_labels(cells: Iterable[Cell]) -> Mapping[str, str]:
    """What readers see of each of these attacks, by its full name.

    That is its label, or where others have the same one, its full name; of an attack that is
    labelled in several ways, as in several arms, the label that says the most.
    """
    labels = dict[str, str]()
    for cell in cells:
        label = cell.label or cell.attack
        labels[cell.attack] = max(labels.get(cell.attack, label), label, key=len)
    taken = Counter(labels.values())
    return {
        attack: label if taken[label] == 1 and label not in labels else attack
        for attack, label in labels.items()
    }


def labels_across(exposures: Sequence[Exposure]) -> Mapping[str, str]:
    """What readers see of each attack that got something, over all these exposures."""
    return reader_labels(
        finding.cell
        for exposure in exposures
        for case in exposure.cases
        for finding in case.findings
    )


def headline_row(exposures: Sequence[Exposure]) -> Row:
    """A headline of these exposures, which share a question; one of them was measured."""
    return next(exposure.cases[0].row for exposure in exposures if exposure.cases)
