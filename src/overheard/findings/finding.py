"""Findings, refusals and run records of an audit."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from overheard.archive.run_time import RunTime
from overheard.core.accountant import AccountedMechanism
from overheard.core.claims import LearningCurve, Timeline
from overheard.core.parties import Party
from overheard.core.scorer import Score
from overheard.core.task import Utility
from overheard.findings.control_draws import ControlDraws
from overheard.findings.frame import score_columns, typed_frame
from overheard.findings.html import html_table
from overheard.findings.metadata import MetadataItem
from overheard.findings.names import make_printable, name_observers, name_party
from overheard.findings.traffic import Traffic

if TYPE_CHECKING:
    import pandas

MAX_TIES = 5
"""Most tied candidates that a table lists; of more it gives the number."""

NOTEBOOK = "overheard.report.notebook"
"""The module that shows an audit in a notebook."""

MAX_TABLE_LINES = 40
"""Most lines of a table in a notebook; of more it gives the number."""


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


@dataclass(frozen=True, slots=True)
class Finding:
    """One attack's claim about one target, with its scores.

    Args:
        cell: the cell.
        target: the target.
        claimed: the claim as numbers (label shares: one a class).
        true: the ground truth as numbers; () if unknown.
        scores: scores of the claim and of the guesses; () if the ground truth is unknown.
        low: lower ends of the claimed intervals, at level `core.claims.INTERVAL_LEVEL`; None if
            the attack claims none.
        high: upper ends of the claimed intervals.
        timeline: evidence over time, for questions about time.
        true_since: true first round of the change, for questions about time; None = no change.
        candidates: for a choice among candidates, the candidate of each claimed number.
        none_of_them: claimed probability that the answer is none of the candidates; None = not
            claimed.
        true_user: the user behind the target; None if it is no single user.
        is_checked: whether the ground truth is known and the claim was scored.
        blind: claims of the uninformed guesses as numbers, by name, if the claim was not
            scored; otherwise the scores include them.
        sent_rounds: the observed rounds in which the target sent an update.
        client: the client behind a pseudonym that lasts for one round; "" = the target is no
            such pseudonym.
        redrawn_fits: how well the claim fits the ground truth, and then what the target would
            hold in each partition drawn anew, or what every client holds; larger = better.
            () = not computed.
        doubt: why the attack does not trust its own intervals, found without the ground truth;
            None = it found no reason.
        learning_curve: the attacker's own error by number of virtual clients; None = not
            measured.

    """

    cell: Cell
    target: Party
    claimed: tuple[float, ...]
    true: tuple[float, ...]
    scores: tuple[Score, ...]
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None
    timeline: Timeline | None = None
    true_since: int | None = None
    candidates: tuple[str, ...] = ()
    none_of_them: float | None = None
    true_user: str | None = None
    is_checked: bool = True
    blind: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    sent_rounds: tuple[int, ...] = ()
    redrawn_fits: tuple[float, ...] = ()
    doubt: str | None = None
    client: str = ""
    learning_curve: LearningCurve | None = None

    @property
    def top_candidate(self) -> str:
        """The candidate with the highest score, or the tied ones; "" if there are none."""
        if not self.candidates:
            return ""
        best = max(self.claimed)
        pairs = zip(self.candidates, self.claimed, strict=True)
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
            else f", best guess {_number(first.best_uninformed)}"
        )
        return f"<Finding: {about}, {make_printable(first.name)} {_number(first.value)}{guess}>"

    def _repr_html_(self) -> str:
        cell = self.cell
        return html_table(
            f"{cell.attack} by {name_observers(cell.observers)}, about "
            f"{name_party(self.target)}, "
            f"{cell.arm}, seed {cell.seed}",
            ("score", "value", "better", "best guess", "gain"),
            [
                (
                    one.name,
                    _number(one.value),
                    one.better,
                    _number(one.best_uninformed),
                    _number(one.gain),
                )
                for one in self.scores
            ],
            "" if self.is_checked else "Not checked: the ground truth is unknown.",
        )


@dataclass(frozen=True, slots=True)
class Refusal:
    """An attack that could not run. This means not measured, and not that nothing leaks."""

    cell: Cell
    target: Party
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArmDefense:
    """One defense of an arm.

    Args:
        settings: repr of the defense, with all its settings.
        enforced_at: where it is enforced: client, server or protocol.
        switched_off_by: who could switch it off unnoticed.
        promise: its formal guarantee, in words.
        accounted: its noise mechanism and the privacy accounting; None = it states none.

    """

    settings: str
    enforced_at: str
    switched_off_by: str
    promise: str
    accounted: AccountedMechanism | None = None


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
        missing: number of missing replies of clients, over all rounds.
        answers: number of replies received.
        is_control: whether it is a control run; see `Cell`.
        traffic: bytes sent; None if not counted.
        seconds: time of the training; None if not measured, as for a recording. It differs
            between equal runs, so it is not compared.
        are_records_exchangeable: whether members and non-members among the candidate records
            are exchangeable; see `auditing.exchangeability`.
        canary_odds: for canaries, the mean number that a client gets for each one held out;
            None = the candidate records are no canaries.
        has_truth: whether the ground truth is known, so that claims can be scored.
        record_labels: the label of each candidate record.
        record_exchange: which candidate records might as well have had another owner.
        control: how its examples are drawn; see `Cell`.
        control_number: its number among the controls of its kind; see `Cell`.
        in_clear: what its messages contain besides weights; () = nothing. It is () for a
            control, too.
        are_defenses_known: whether `defenses` are all that were in force. False for a
            recording that names none: it may not have been told.
        utility: what `accuracy` measures.

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
    has_truth: bool = True
    record_labels: tuple[int, ...] = field(default=(), repr=False)
    record_exchange: RecordExchange = "none"
    control: ControlDraws = ""
    control_number: int = 0
    in_clear: tuple[MetadataItem, ...] = ()
    are_defenses_known: bool = True
    utility: Utility = "accuracy"


@dataclass(frozen=True, slots=True)
class Audit:
    """All results of an audit.

    Args:
        title: title of the plan.
        subject: one sentence on what was audited: data, clients, model, training.
        class_names: name of each label; they come from the data, so a report must escape them.
        arms: one entry per arm and seed.
        findings: one entry per target of an attack that ran.
        refusals: one entry per target of an attack that could not run.
        plan: the resolved plan, as TOML.
        versions: versions of the software used, by name.
        margins: by score, the smallest gain that matters, if the plan states another one than
            the question does.
        release: what the plan says of the release of the results, by field of
            `plans.release_plan.ReleasePlan`.
        made_on: the day of the audit, such as "2026-11-22"; "" = not known.
        is_recorded: whether a recorded run was audited, and not simulated ones.
        is_auxiliary_separate: whether the attackers' auxiliary examples are known to be no
            client's own. False for a run that was recorded outside Overheard.

    """

    title: str
    subject: str
    class_names: tuple[str, ...]
    arms: tuple[ArmRun, ...]
    findings: tuple[Finding, ...]
    refusals: tuple[Refusal, ...]
    plan: str
    versions: Mapping[str, str]
    margins: Mapping[str, float] = field(default_factory=dict)
    release: Mapping[str, str] = field(default_factory=dict)
    made_on: str = field(default="", compare=False)
    is_recorded: bool = False
    is_auxiliary_separate: bool = True

    def to_frame(self) -> "pandas.DataFrame":
        """Return a DataFrame with a row for each finding and score, like `findings.csv`.

        A finding without scores has one row. The columns and their dtypes are
        `findings.frame.COLUMNS`: scores are float64, round numbers Int64, names string. Rounds
        and the numbers of claims are tuples; guesses are dictionaries by name. Names are not
        escaped, and numbers are not rounded.
        """
        return typed_frame(
            [
                _frame_row(finding, score)
                for finding in self.findings
                for score in finding.scores or (None,)
            ]
        )

    def scores(self) -> "pandas.DataFrame":
        """Return a DataFrame of mean scores with intervals, as in `findings.json`.

        There is a row for each arm, observers, attack, observed rounds and score. Means are
        over targets and seeds, without controls. The columns `value`, `value low` and
        `value high` are the mean and its 95 % interval, and `gain` with its ends is what the
        attack gains over the best uninformed guess (`best guess`). Without an interval the
        ends are NaN. Rows with the longest `rounds` observe all rounds together.
        """
        frame: pandas.DataFrame = import_module(NOTEBOOK).score_frame(self)
        return frame

    def verdicts(self) -> "pandas.DataFrame":
        """Return a DataFrame with the verdict on each question, by arm and observers.

        `verdict` is one of `findings.threat_verdict.Verdict`, such as "leaks". `p` is the
        p-value of `attack`, adjusted for the number of attacks; `gain` with its 95 % interval
        is that of the strongest attack; `why` says why it is not enough to judge.
        """
        frame: pandas.DataFrame = import_module(NOTEBOOK).verdict_frame(self)
        return frame

    # Any: a matplotlib figure, whose package is loaded only if somebody asks for charts.
    def figures(self) -> Mapping[str, Any]:
        """Return the charts that compare arms and rounds as matplotlib figures, by title.

        They are those of the report, in its colours for white paper.
        """
        drawn: Mapping[str, Any] = import_module(NOTEBOOK).draw_figures(self)
        return drawn

    def __repr__(self) -> str:
        """Give the title and the number of runs, findings and refusals on one line."""
        return f"<Audit {make_printable(self.title)!r}: {self._counts}>"

    def _repr_html_(self) -> str:
        # Verdicts are judged in a higher layer, which is loaded only if a notebook shows them.
        verdicts: str = import_module(NOTEBOOK).verdict_matrix(self)
        lines = list(_mean_lines(self.findings))
        more = len(lines) - MAX_TABLE_LINES
        rest = f" {more} more lines are in to_frame()." if more > 0 else ""
        return verdicts + html_table(
            "What the verdicts rest on",
            ("arm", "observers", "attack", "score", "mean", "best guess", "findings"),
            lines[:MAX_TABLE_LINES],
            f"{self._counts}. Means over targets and seeds, without controls.{rest}",
        )

    @property
    def _counts(self) -> str:
        counted = (("run", self.arms), ("finding", self.findings), ("refusal", self.refusals))
        return ", ".join(
            f"{len(items)} {noun}{'' if len(items) == 1 else 's'}" for noun, items in counted
        )


def _frame_row(finding: Finding, score: Score | None) -> dict[str, object]:
    cell, timeline = finding.cell, finding.timeline
    return {
        "arm": cell.arm,
        "seed": cell.seed,
        "observers": "; ".join(cell.observers),
        "attack": cell.attack,
        "settings": cell.settings,
        "question": cell.question,
        "rounds": cell.rounds,
        "target": finding.target,
        **score_columns(score),
        "claimed": finding.claimed,
        "true": finding.true,
        "low": finding.low,
        "high": finding.high,
        "is_control": cell.is_control,
        "control": cell.control,
        "control_number": cell.control_number,
        "true_since": finding.true_since,
        "since": None if timeline is None else timeline.since,
        "alarm": None if timeline is None else timeline.alarm,
        "named": finding.top_candidate or None,
        "none_of_them": finding.none_of_them,
        "true_user": finding.true_user,
    }


def _mean_lines(findings: Sequence[Finding]) -> Iterator[tuple[str, ...]]:
    """Yield a line for each attack: its first score, over the most rounds observed at once."""
    groups = defaultdict[tuple[object, ...], list[Finding]](list)
    for one in findings:
        cell = one.cell
        if not cell.is_control:
            groups[cell.arm, cell.observers, cell.attack, cell.question].append(one)
    for group in groups.values():
        most = max(len(one.cell.rounds) for one in group)
        longest = [one for one in group if len(one.cell.rounds) == most]
        scores = [one.scores[0] for one in longest if one.scores]
        guesses = [
            score.best_uninformed for score in scores if score.best_uninformed is not None
        ]
        cell = longest[0].cell
        yield (
            *(cell.arm, name_observers(cell.observers), cell.attack),
            scores[0].name if scores else "not checked",
            _number(fmean(score.value for score in scores) if scores else None),
            _number(fmean(guesses) if guesses else None),
            str(len(longest)),
        )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
