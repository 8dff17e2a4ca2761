"""Results of an audit, by arm, threat, question and attack."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from overheard.core.parties import Party
from overheard.core.task import Utility
from overheard.findings.finding import ArmRun, Cell, Finding, Refusal
from overheard.findings.names import make_printable, name_observers, name_other_clients
from overheard.findings.score_row import ScoreRow
from overheard.findings.threat_verdict import TargetKind, ThreatVerdict, Verdict


@dataclass(frozen=True, slots=True)
class AttackResult:
    """Result of one attack by one group of observers in one arm.

    Args:
        attack: full name of the attack.
        label: name shown to readers; unique within the threat's result.
        is_adaptive: whether the attack adapts to the defenses of the arm.
        headline: name of the question's main score.
        rows_by_score: summary rows by score, over the most rounds observed together.
        headline_by_round: the headline score's row for each round observed alone.
        findings: the findings summarised in `rows_by_score`.

    """

    attack: str
    label: str
    is_adaptive: bool
    headline: str
    rows_by_score: Mapping[str, ScoreRow]
    headline_by_round: Mapping[int, ScoreRow]
    findings: tuple[Finding, ...]

    @property
    def headline_row(self) -> ScoreRow:
        """The headline score's row, over the most rounds."""
        return self.rows_by_score[self.headline]


@dataclass(frozen=True, slots=True)
class ThreatResult:
    """Result of one threat in one arm, for one question.

    Args:
        arm: name of the arm.
        observers: the observers, who pool their views.
        question: name of the question.
        target_kind: whether the targets are single clients or the cohort.
        attack_results: results of the attacks with a headline score, the best first.
        refusals: refusals of attacks that could not run.
        rows: summary rows of all attacks, scores and observed rounds.
        judgement: the verdict, with the test and the interval that it rests on.
        unchecked_claims: claims of all attacks over the most rounds, if the ground truth is
            unknown.
        labels: name shown to readers for each attack, refused ones included, by full name.
        attacks_run: full names of the attacks that made a claim.

    """

    arm: str
    observers: tuple[Party, ...]
    question: str
    target_kind: TargetKind
    attack_results: tuple[AttackResult, ...]
    refusals: tuple[Refusal, ...]
    rows: tuple[ScoreRow, ...]
    judgement: ThreatVerdict
    unchecked_claims: tuple[Finding, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    attacks_run: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The threat and its question in words; the same in every arm."""
        observers = name_observers(self.observers)
        target = (
            name_other_clients(self.observers)
            if self.target_kind == "cohort"
            else "each client"
        )
        question = make_printable(self.question).replace("_", " ")
        return f"{observers[0].upper()}{observers[1:]}, about {target}: {question}"

    @property
    def verdict(self) -> Verdict:
        """The verdict, as one word."""
        return self.judgement.verdict

    @property
    def shared_gain(self) -> float:
        """What the best attack gains although it tells no target from another; usually 0."""
        if not self.attack_results:
            return 0.0
        return self.judgement.shared_gains.get(self.attack_results[0].attack, 0.0)


@dataclass(frozen=True, slots=True)
class ArmResult:
    """Results of one arm over all seeds.

    Args:
        name: name of the arm.
        runs: the planned runs, without controls.
        threat_results: one result per group of observers, question and target kind.

    """

    name: str
    runs: tuple[ArmRun, ...]
    threat_results: tuple[ThreatResult, ...]

    @property
    def is_undefended(self) -> bool:
        """Whether no defense was in force."""
        return not self.runs[0].defenses

    @property
    def utility(self) -> Utility:
        """What its accuracy measures: in tasks without classes, another utility."""
        return self.runs[0].utility

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


def find_undefended_arm(arms: Sequence[ArmResult]) -> ArmResult | None:
    """Return the arm without defenses, which the others are compared with; None = none."""
    return next((arm for arm in arms if arm.is_undefended), None)


def group_by_threat(arms: Sequence[ArmResult]) -> Mapping[str, Sequence[ThreatResult]]:
    """Group results of all arms by threat and question, if an attack was measured."""
    groups: dict[str, list[ThreatResult]] = {}
    for threat_result in (
        threat_result for arm in arms for threat_result in arm.threat_results
    ):
        groups.setdefault(threat_result.title, []).append(threat_result)
    return {
        title: results
        for title, results in groups.items()
        if any(threat_result.attack_results for threat_result in results)
    }


def select_question(arms: Sequence[ArmResult], question: str) -> tuple[ArmResult, ...]:
    """Return the arms with their results for one question only."""
    return tuple(
        replace(
            arm,
            threat_results=tuple(
                result for result in arm.threat_results if result.question == question
            ),
        )
        for arm in arms
    )


def attack_labels(cells: Iterable[Cell]) -> Mapping[str, str]:
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


def labels_of_results(results: Sequence[ThreatResult]) -> Mapping[str, str]:
    """Return the names to show to readers for all attacks with results."""
    return attack_labels(
        finding.cell
        for threat_result in results
        for attack_result in threat_result.attack_results
        for finding in attack_result.findings
    )


def first_headline_row(results: Sequence[ThreatResult]) -> ScoreRow:
    """Return the first headline row of results that share a question; one must be measured."""
    return next(
        threat_result.attack_results[0].headline_row
        for threat_result in results
        if threat_result.attack_results
    )
