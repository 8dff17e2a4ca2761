"""Findings, refusals and records of runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Self, final

from overheard.archive.run_time import RunTime
from overheard.core.accounting.accountant import AccountedMechanism
from overheard.core.accounting.client_accounts import ClientAccounts
from overheard.core.claims import Claim, LearningCurve, Picture, Timeline
from overheard.core.parties import COHORT, Party
from overheard.core.scorer import Score
from overheard.core.task import Utility
from overheard.findings.control_draws import ControlDraws
from overheard.findings.html import html_table, short_number
from overheard.findings.lost_replies import LostReply
from overheard.findings.metadata import MetadataItem
from overheard.findings.names import make_printable, name_observers, name_targets
from overheard.findings.privacy.canary_scores import CanaryScores
from overheard.findings.privacy.epsilon_rows import RunCriticism
from overheard.findings.refusal_kind import RefusalKind
from overheard.findings.threat_verdict import TargetKind
from overheard.findings.traffic import Traffic
from overheard.participation.sums_reading import SumsReading
from overheard.statistics.estimate import Estimate

MAX_TIES = 5
"""Most tied candidates that a table lists; of more it gives the number."""

RecordExchange = Literal["all", "same label", "none"]
"""Which candidate records might as well have had each other's owner. all: any two, as canaries,
which are assigned at random; same label: two with one label; none: not known of any two."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of an audit: arm, seed, observers, attack and rounds.

    Args:
        arm: name of the arm, such as "no defense" or "local DP".
        seed: seed of the run.
        observers: the observers, who pool their views.
        attack: full name of the attack, unique among the threats of these observers.
        settings: repr of the attack, with all its settings.
        question: name of the question, which is that of its scorer.
        rounds: the observed rounds, in order.
        is_control: whether the run is the control of the planned run with the same arm and
            seed. Depending on the question, clients replace examples without a shift, or
            examples are permuted at random among all clients.
        part: name of the attack in the registry, without settings, such as "decaf".
        label: name shown to readers, with only what applies to this attack in this arm.
        is_adaptive: whether its claims change with the defenses that the attacker knows.
        control: how the examples of a control by exchange are drawn: "natural" or "exact", see
            `data.partition.schedule.Draws`; "" for all other runs.
        control_number: its number among the controls of its kind, from 0.

    """

    arm: str
    seed: int
    observers: tuple[Party, ...]
    attack: str
    settings: str
    question: str
    rounds: tuple[int, ...]
    is_control: bool = False
    part: str = ""
    label: str = ""
    is_adaptive: bool = False
    control: ControlDraws = ""
    control_number: int = 0


@final
@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A claim, or the truth in its form, as it is shown without the package of its question.

    Args:
        numbers: the claim as numbers (label shares: one a class).
        low: lower ends of the intervals, at level `core.claims.INTERVAL_LEVEL`; None if the
            attack claims none.
        high: upper ends of the intervals.
        candidates: for a choice among candidates, the candidate of each number.
        none_of_them: probability that the answer is none of the candidates; None = not claimed.
        timeline: evidence over time, for questions about time.
        doubt: why the attack does not trust its own intervals, found without the ground truth;
            None = it found no reason.
        learning_curve: the attacker's own error by number of virtual clients; None = not
            measured.
        pictures: what it shows; () also where the plan asks for no pictures.
        strengths: how far each number could stand out at most; () = not known.

    """

    numbers: tuple[float, ...] = ()
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None
    candidates: tuple[str, ...] = ()
    none_of_them: float | None = None
    timeline: Timeline | None = None
    doubt: str | None = None
    learning_curve: LearningCurve | None = None
    pictures: tuple[Picture, ...] = field(default=(), repr=False, compare=False)
    strengths: tuple[float, ...] = field(default=(), repr=False, compare=False)

    @classmethod
    def of(cls, claim: Claim, *, with_pictures: bool = False) -> Self:
        """Return the row of a claim on any question."""
        interval = claim.interval()
        return cls(
            claim.numbers(),
            None if interval is None else interval.low,
            None if interval is None else interval.high,
            claim.candidates(),
            claim.unknown_probability(),
            claim.timeline(),
            claim.doubt(),
            claim.learning_curve(),
            claim.pictures() if with_pictures else (),
            claim.strengths(),
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """One attack's claim, with its scores.

    Args:
        cell: the cell.
        targets: whom the claim is about; several if it is joint, in the order of its attack.
        claimed: the claim.
        true: the claim that is true; None if the ground truth is unknown.
        scores: scores of the claim and of the guesses; () if the ground truth is unknown.
        guesses: claims of the uninformed guesses as numbers, by name, if the claim was not
            scored; otherwise the scores include them.
        fits: how well the claim fits the ground truth, and then what the target would hold in
            each partition drawn anew, or what every client holds; larger = better. () = not
            computed.
        sent_rounds: the observed rounds in which the target sent an update.
        client: the client behind a pseudonym that lasts for one round; "" = the target is no
            such pseudonym.
        true_user: the user behind the target; None if it is no single user.

    """

    cell: Cell
    targets: tuple[Party, ...]
    claimed: ClaimRow
    true: ClaimRow | None = None
    scores: tuple[Score, ...] = ()
    guesses: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    fits: tuple[float, ...] = ()
    sent_rounds: tuple[int, ...] = ()
    client: str = ""
    true_user: str | None = None

    @property
    def target(self) -> Party:
        """The one target of the claim; `COHORT` if it has several."""
        return self.targets[0] if len(self.targets) == 1 else COHORT

    @property
    def target_kind(self) -> TargetKind:
        """Whether it is about single clients, perhaps several together, or about the cohort."""
        return "cohort" if self.targets == (COHORT,) else "clients"

    @property
    def is_checked(self) -> bool:
        """Whether the ground truth is known and the claim was scored."""
        return self.true is not None

    @property
    def true_numbers(self) -> tuple[float, ...]:
        """The ground truth as numbers; () if unknown."""
        return () if self.true is None else self.true.numbers

    @property
    def true_since(self) -> int | None:
        """The true first round of the change, for questions about time; None = no change."""
        timeline = None if self.true is None else self.true.timeline
        return None if timeline is None else timeline.since

    @property
    def top_candidate(self) -> str:
        """The candidate with the highest score, or the tied ones; "" if there are none."""
        claimed = self.claimed
        if not claimed.candidates:
            return ""
        best = max(claimed.numbers)
        pairs = zip(claimed.candidates, claimed.numbers, strict=True)
        top = [name for name, number in pairs if number == best]
        return "; ".join(top) if len(top) <= MAX_TIES else f"a tie of {len(top)}"

    def __repr__(self) -> str:
        """Name the attack, the target and the first score on one line."""
        about = make_printable(f"{self.cell.attack} about {self.target}")
        if not self.is_checked:
            return f"<Finding: {about}, not checked>"
        if not self.scores:
            return f"<Finding: {about}, no score>"
        first = self.scores[0]
        guess = (
            ""
            if first.best_uninformed is None
            else f", best guess {short_number(first.best_uninformed)}"
        )
        value = f"{make_printable(first.name)} {short_number(first.value)}"
        return f"<Finding: {about}, {value}{guess}>"

    def _repr_html_(self) -> str:
        cell = self.cell
        return html_table(
            f"{cell.attack} by {name_observers(cell.observers)}, about "
            f"{name_targets(self.targets, cell.observers)}, "
            f"{cell.arm}, seed {cell.seed}",
            ("score", "value", "better", "best guess", "gain"),
            [
                (
                    one.name,
                    short_number(one.value),
                    one.better,
                    short_number(one.best_uninformed),
                    short_number(one.gain),
                )
                for one in self.scores
            ],
            "" if self.is_checked else "Not checked: the ground truth is unknown.",
        )


def targets_of(findings: Iterable[Finding]) -> frozenset[Party]:
    """Return all whom findings are about, each of a joint claim included."""
    return frozenset(party for one in findings for party in one.targets)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An attack that could not run. This means not measured, and not that nothing leaks.

    Args:
        cell: the cell.
        target: the target.
        missing: what was missing, or what failed; one phrase each.
        kind: see `findings.refusal_kind.RefusalKind`.

    """

    cell: Cell
    target: Party
    missing: tuple[str, ...]
    kind: RefusalKind = "missing"

    @property
    def target_kind(self) -> TargetKind:
        """Whether the target is a single client or the cohort."""
        return "cohort" if self.target == COHORT else "clients"


@dataclass(frozen=True, slots=True)
class ArmDefense:
    """One defense of an arm.

    Args:
        settings: repr of the defense, with all its settings.
        enforced_at: where it is enforced: client, server or protocol.
        switched_off_by: who could switch it off unnoticed.
        promise: its formal guarantee, in words.
        accounted: its noise mechanism and the privacy accounting; None = it states none.
        clients: the accountant of each client; None = it has none, as its noise is not for
            single records, or no accounting covers it.

    """

    settings: str
    enforced_at: str
    switched_off_by: str
    promise: str
    accounted: AccountedMechanism | None = None
    clients: ClientAccounts | None = None


LARGEST_DIFFERENCE = 0.55
"""The largest AUC of a classifier that sees listed records alone, at which they are judged."""


@final
@dataclass(frozen=True, slots=True)
class RecordDifference:
    """How well a classifier that sees the records alone tells members from outsiders.

    It compares records of the same label. Its AUC is of records that it did not learn from,
    with an interval over records.

    Args:
        of_members: the AUC of the members of any client among outsiders; None = there are too
            few records.
        by_client: the AUC of the records of one client among outsiders, the mean over clients;
            None = there are too few, or owners are not known.
        members: number of members.
        outsiders: number of outsiders.

    """

    of_members: Estimate | None
    by_client: Estimate | None
    members: int
    outsiders: int

    def auc(self, about: TargetKind) -> Estimate | None:
        """Return the AUC that decides whether claims about these targets are judged."""
        return self.of_members if about == "cohort" else self.by_client

    def is_small(self, about: TargetKind) -> bool:
        """Whether members and outsiders are enough alike to judge claims about them."""
        auc = self.auc(about)
        return auc is not None and auc.mean <= LARGEST_DIFFERENCE

    def sentence(self, about: TargetKind) -> str:
        """Return the AUC that decides in words, without a full stop."""
        auc = self.auc(about)
        whose = "members" if about == "cohort" else "one client's records"
        if auc is None:
            return (
                f"{self.members} members and {self.outsiders} outsiders are listed, too few to "
                f"tell whether {whose} differ from outsiders of their label by themselves"
            )
        interval = (
            ""
            if auc.low is None or auc.high is None
            else f" (95 % interval {auc.low:.2f} to {auc.high:.2f})"
        )
        return (
            "a classifier that sees the listed records alone, and not the run, tells "
            f"{whose} from outsiders of their label with an AUC of {auc.mean:.2f}{interval}"
        )

    def sentences(self) -> tuple[str, ...]:
        """Return both in words, without full stops; one if owners are not known."""
        abouts: tuple[TargetKind, ...] = ("cohort", "clients")
        return tuple(self.sentence(one) for one in abouts[: 1 if self.by_client is None else 2])


@dataclass(frozen=True, slots=True)
class ArmRun:
    """One simulated or recorded run.

    Args:
        arm: name of the arm.
        seed: seed of the run.
        defenses: defenses in force, in the order in which they act; () = none.
        accuracy: accuracy of the global model on the test set, by round of the broadcast
            (0..1); empty if not measured, as for a recording. Without classes, the utility
            of the task.
        missing: number of replies of clients that never arrived, over all rounds.
        answers: number of replies received.
        is_control: whether it is a control run; see `Cell`.
        traffic: bytes sent; None if not counted.
        seconds: time of the training; None if not measured, as for a recording. It differs
            between equal runs, so it is not compared.
        are_records_exchangeable: whether members and non-members among the candidate records
            are exchangeable; see `auditing.run_records`.
        canary_odds: for canaries, the mean number that a client gets for each one held out;
            None = the candidate records are no canaries.
        canary_clients: for each candidate record, the client that a fair coin gave it to or
            not, "" = none; () = no coin was fair, or the candidate records are no canaries.
        has_truth: whether the ground truth is known, so that claims can be scored.
        record_labels: the label of each candidate record.
        record_exchange: which candidate records might as well have had another owner.
        record_difference: how far listed candidate records differ by themselves; None = they
            were drawn.
        control: how its examples are drawn; see `Cell`.
        control_number: its number among the controls of its kind; see `Cell`.
        in_clear: what its messages contain besides weights; () = nothing. It is () for a
            control, too.
        are_defenses_known: whether `defenses` are all that were in force. False for a
            recording that names none: it may not have been told.
        utility: what `accuracy` measures.
        unrecorded: number of messages that arrived and whose content is not stored.
        lost_replies: the first of both, by party and reason; see
            `findings.lost_replies`. It is () for a control.
        clients: number of clients that sent or could read a message; 0 = unknown.
        canary_scores: how far canary clients show in it; () = it has none.
        criticisms: faults that the doctor found in its differential privacy.
        sums: what the sums of its cohorts reveal of single clients; None = nobody reads sums,
            or they are too large. It is None for a control, too.

    """

    arm: str
    seed: int
    defenses: tuple[ArmDefense, ...]
    accuracy: Mapping[int, float]
    missing: int
    answers: int
    is_control: bool = False
    traffic: Traffic | None = None
    seconds: RunTime | None = field(default=None, compare=False)
    are_records_exchangeable: bool = False
    canary_odds: float | None = None
    canary_clients: tuple[Party | Literal[""], ...] = field(default=(), repr=False)
    has_truth: bool = True
    record_labels: tuple[int, ...] = field(default=(), repr=False)
    record_exchange: RecordExchange = "none"
    control: ControlDraws = ""
    control_number: int = 0
    in_clear: tuple[MetadataItem, ...] = ()
    are_defenses_known: bool = True
    utility: Utility = "accuracy"
    unrecorded: int = 0
    lost_replies: tuple[LostReply, ...] = ()
    clients: int = 0
    canary_scores: tuple[CanaryScores, ...] = ()
    criticisms: tuple[RunCriticism, ...] = ()
    sums: SumsReading | None = None
    record_difference: RecordDifference | None = None
