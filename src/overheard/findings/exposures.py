"""Results of an audit, by arm, threat, question and attack."""

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
"""leaks: significantly better than guessing; unclear: not significantly different from it;
silent: no better than it; unjudged: there is no guess or no interval to compare with;
unchecked: claims were made, but there is no ground truth; unmeasured: no attack could run."""


@dataclass(frozen=True, slots=True)
class Case:
    """Result of one attack by one group of observers in one arm.

    Args:
        attack: full name of the attack.
        label: name shown to readers; unique within the threat's result.
        is_adaptive: whether the attack adapts to the defenses of the arm.
        headline: name of the question's main score.
        whole: summary rows by score, over the most rounds observed together.
        by_round: the headline score's row for each round observed alone.
        findings: the findings summarised in `whole`.

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
        """The headline score's row, over the most rounds."""
        return self.whole[self.headline]


@dataclass(frozen=True, slots=True)
class Exposure:
    """Result of one threat in one arm, for one question.

    Args:
        arm: name of the arm.
        observers: the observers, who pool their views.
        question: name of the question.
        about: whether the targets are single clients or the cohort.
        cases: results of the attacks with a headline score, the best first.
        refusals: refusals of attacks that could not run.
        rows: summary rows of all attacks, scores and observed rounds.
        claims: claims of all attacks over the most rounds, if the ground truth is unknown.
        labels: name shown to readers for each attack, refused ones included, by full name.

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
        """The threat and its question in words; the same in every arm."""
        observers = together(self.observers)
        target = all_others(self.observers) if self.about == "cohort" else "each client"
        question = shown(self.question).replace("_", " ")
        return f"{observers[0].upper()}{observers[1:]}, about {target}: {question}"

    @property
    def verdict(self) -> Verdict:
        """Verdict on the best attack, by the interval of its gain over an uninformed guess."""
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
    """Results of one arm over all seeds.

    Args:
        name: name of the arm.
        runs: the planned runs, without controls.
        exposures: one result per group of observers, question and target kind.

    """

    name: str
    runs: tuple[ArmRun, ...]
    exposures: tuple[Exposure, ...]

    @property
    def is_bare(self) -> bool:
        """Whether no defense was in force."""
        return not self.runs[0].defenses

    @property
    def accuracy(self) -> float | None:
        """Accuracy of the last tested global model, mean over seeds; None = not measured."""
        by_round = self.accuracy_by_round
        return by_round[max(by_round)] if by_round else None

    @property
    def accuracy_by_round(self) -> Mapping[int, float]:
        """Accuracy of the global model at each broadcast, mean over seeds that tested it."""
        rounds = sorted({number for run in self.runs for number in run.accuracy})
        values_by_round = {
            number: [run.accuracy[number] for run in self.runs if number in run.accuracy]
            for number in rounds
        }
        return {number: sum(values) / len(values) for number, values in values_by_round.items()}


def bare_arm(every: Sequence[Arm]) -> Arm | None:
    """Return the arm without defenses, which the others are compared with; None = none."""
    return next((arm for arm in every if arm.is_bare), None)


def by_threat(every: Sequence[Arm]) -> Mapping[str, Sequence[Exposure]]:
    """Group results of all arms by threat and question, if an attack was measured."""
    groups: dict[str, list[Exposure]] = {}
    for exposure in (exposure for arm in every for exposure in arm.exposures):
        groups.setdefault(exposure.title, []).append(exposure)
    return {
        title: results
        for title, results in groups.items()
        if any(exposure.cases for exposure in results)
    }


def arms_asking(every: Sequence[Arm], question: str) -> tuple[Arm, ...]:
    """Return the arms with their results for one question only."""
    return tuple(
        replace(
            arm,
            exposures=tuple(result for result in arm.exposures if result.question == question),
        )
        for arm in every
    )


def reader_labels(cells: Iterable[Cell]) -> Mapping[str, str]:
    """Return the name to show to readers for each attack, by its full name.

    The name is the attack's label, or its full name if another attack has the same label. If an
    attack has several labels, for example in different arms, the longest is used.
    """
    labels = dict[str, str]()
    for cell in cells:
        label = cell.label or cell.attack
        labels[cell.attack] = max(labels.get(cell.attack, label), label, key=len)
    uses = Counter(labels.values())
    return {
        attack: label if uses[label] == 1 and label not in labels else attack
        for attack, label in labels.items()
    }


def labels_across(exposures: Sequence[Exposure]) -> Mapping[str, str]:
    """Return the names to show to readers for all attacks with results."""
    return reader_labels(
        finding.cell
        for exposure in exposures
        for case in exposure.cases
        for finding in case.findings
    )


def headline_row(exposures: Sequence[Exposure]) -> Row:
    """Return the first headline row of results that share a question; one must be measured."""
    return next(exposure.cases[0].row for exposure in exposures if exposure.cases)
