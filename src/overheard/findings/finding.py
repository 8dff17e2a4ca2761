"""What an audit found out, what it could not, and what the runs it audited were worth."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING

from overheard.archive.seconds import Seconds
from overheard.core.accountant import Accounted
from overheard.core.claims import Timeline
from overheard.core.parties import Party
from overheard.core.scorer import Score
from overheard.findings.frame import score_cells, typed_frame
from overheard.findings.html import html_table
from overheard.findings.names import shown, spoken, together
from overheard.findings.traffic import Traffic

if TYPE_CHECKING:
    import pandas

TIES = 5
"""Candidates with the highest score that a table names; of more it says how many."""

MOST_LINES = 40
"""Of a table in a notebook; of more it says how many there are."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Where in an audit a finding or a refusal belongs.

    Args:
        arm: name of the federation's variant, such as "no defense" or "local DP".
        seed: of the simulated run.
        observers: who listened, pooling what they read.
        attack: its full name, unique among the threats of these observers.
        settings: the attack's repr, its full record.
        question: name of the scorer that holds its claims against the truth.
        rounds: those that were listened to, in order.
        is_control: True if the run is the control of the arm's other run of the same seed:
            examples are exchanged as in it, and nothing shifts; or, where clients are asked who
            they are, examples were dealt anew among all of them by chance.
        part: the attack's own name, without settings, such as "decaf".
        label: what readers see: only what is true of this attack in this arm.
        is_adaptive: whether its claims change with the defenses in force, as far as the
            attacker knows them.

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


@dataclass(frozen=True, slots=True)
class Finding:
    """What one attack got out of one target.

    Args:
        cell: where it belongs.
        target: whom the claim is about.
        claimed: the claim as numbers (label shares: one a class).
        true: the true answer as numbers; () where it is not known.
        scores: the claim's figures of merit beside those of the guesses; () where the true
            answer is not known.
        low: lower ends of the intervals in which the claim says the numbers lie, with the
            chance `core.claims.INTERVAL_LEVEL`; None where it does not say.
        high: upper ends.
        timeline: of a question about time, how the evidence went.
        true_since: of a question about time, the first round of the change; None = none came.
        candidates: of a question that is a choice, what each of the claimed numbers speaks for.
        none_of_them: the chance, as claimed, that it is none of the candidates; None = unsaid.
        true_user: who the target really is; None where it is nobody in particular.
        is_checked: whether the true answer is known, and the claim was held against it.
        blind: where it was not, the answers of those who heard nothing, as numbers, by the
            guess; elsewhere each score has them.

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

    @property
    def named(self) -> str:
        """Of a choice, whom or what the claim names first; "" where it is none."""
        if not self.candidates:
            return ""
        best = max(self.claimed)
        pairs = zip(self.candidates, self.claimed, strict=True)
        first = [name for name, number in pairs if number == best]
        return "; ".join(first) if len(first) <= TIES else f"a tie of {len(first)}"

    def __repr__(self) -> str:
        """Tell on one line which attack said something of whom, and how near it came."""
        about = shown(f"{self.cell.attack} about {self.target}")
        if not self.is_checked:
            return f"<Finding: {about}, not checked>"
        if not self.scores:
            return f"<Finding: {about}, no score>"
        first = self.scores[0]
        guess = "" if first.blind is None else f", best guess {_number(first.blind)}"
        return f"<Finding: {about}, {shown(first.name)} {_number(first.value)}{guess}>"

    def _repr_html_(self) -> str:
        cell = self.cell
        return html_table(
            f"{cell.attack} by {together(cell.observers)}, about {spoken(self.target)}, "
            f"{cell.arm}, seed {cell.seed}",
            ("score", "value", "better", "best guess", "gain"),
            [
                (
                    one.name,
                    _number(one.value),
                    one.better,
                    _number(one.blind),
                    _number(one.gain),
                )
                for one in self.scores
            ],
            "" if self.is_checked else "The truth is not known: nothing was checked.",
        )


@dataclass(frozen=True, slots=True)
class Refusal:
    """An attack that could not run: not measured, which is not the same as no leak."""

    cell: Cell
    target: Party
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArmDefense:
    """One defense as it stood in an arm.

    Args:
        settings: its repr, its full record.
        enforced_at: at which party.
        switched_off_by: who could leave it out unnoticed.
        promise: what it formally promises, in words.
        accounted: of a defense that adds noise, its mechanism and what that comes to; None = it
            states none.

    """

    settings: str
    enforced_at: str
    switched_off_by: str
    promise: str
    accounted: Accounted | None = None


@dataclass(frozen=True, slots=True)
class ArmRun:
    """One simulated or recorded federation.

    Args:
        arm: its name.
        seed: of the run.
        defenses: in force, in the order in which they act; () = none.
        accuracy: of the global model on the test set at broadcasts, by round (0..1); empty
            where it was not measured, as for a recording.
        missing: how many answers of clients did not come, over all rounds.
        answers: how many came.
        is_control: True if nothing shifts in it: see `Cell`.
        traffic: how many bytes travelled; None where it was not counted.
        seconds: how long the training took; None where it was not measured, as for a
            recording. No two runs have it alike, so it is not compared.
        are_records_alike: whether nothing but who holds them sets the records that are asked
            about apart from those of nobody: see `auditing.alike`.
        canary_odds: where these are canaries, how many a client gets for one that goes nowhere,
            on average; None = they are none.
        has_truth: whether claims could be held against what was the case.

    """

    arm: str
    seed: int
    defenses: tuple[ArmDefense, ...]
    accuracy: Mapping[int, float]
    missing: int
    answers: int
    is_control: bool = False
    traffic: Traffic | None = None
    seconds: Seconds | None = field(default=None, compare=False)
    are_records_alike: bool = False
    canary_odds: float | None = None
    has_truth: bool = True


@dataclass(frozen=True, slots=True)
class Audit:
    """Everything that a report tells.

    Args:
        title: the plan's.
        subject: one sentence on what was audited: data, clients, model, training.
        class_names: what each label means; comes from the data, hence hostile in a report.
        arms: one entry an arm and seed.
        findings: one entry a target of an attack that ran.
        refusals: one entry a target of an attack that could not.
        plan: the plan as resolved, TOML.
        versions: of the software that took part, by name.

    """

    title: str
    subject: str
    class_names: tuple[str, ...]
    arms: tuple[ArmRun, ...]
    findings: tuple[Finding, ...]
    refusals: tuple[Refusal, ...]
    plan: str
    versions: Mapping[str, str]

    def to_frame(self) -> "pandas.DataFrame":
        """Return a DataFrame with a row for each finding and score, as `findings.csv` has them.

        A finding without any score has one row. The columns and their dtypes are
        `findings.frame.COLUMNS`: figures are float64, round numbers Int64, names string. Rounds
        and the numbers of claims are tuples, guesses are dictionaries by name. All are as they
        were found: no name is escaped, and no number is rounded.
        """
        return typed_frame(
            [
                _frame_row(finding, score)
                for finding in self.findings
                for score in finding.scores or (None,)
            ]
        )

    def __repr__(self) -> str:
        """Tell on one line how much it holds."""
        return f"<Audit {shown(self.title)!r}: {self._counts}>"

    def _repr_html_(self) -> str:
        lines = list(_means(self.findings))
        more = len(lines) - MOST_LINES
        rest = f" {more} more lines are in to_frame()." if more > 0 else ""
        return html_table(
            self.title,
            ("arm", "observers", "attack", "score", "mean", "best guess", "findings"),
            lines[:MOST_LINES],
            f"{self._counts}. Means over targets and seeds, controls left out.{rest}",
        )

    @property
    def _counts(self) -> str:
        counted = (("run", self.arms), ("finding", self.findings), ("refusal", self.refusals))
        return ", ".join(
            f"{len(held)} {what}{'' if len(held) == 1 else 's'}" for what, held in counted
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
        **score_cells(score),
        "claimed": finding.claimed,
        "true": finding.true,
        "low": finding.low,
        "high": finding.high,
        "is_control": cell.is_control,
        "true_since": finding.true_since,
        "since": None if timeline is None else timeline.since,
        "alarm": None if timeline is None else timeline.alarm,
        "named": finding.named or None,
        "none_of_them": finding.none_of_them,
        "true_user": finding.true_user,
    }


def _means(findings: Sequence[Finding]) -> Iterator[tuple[str, ...]]:
    """Of each attack its first score, over the most rounds that were listened to at once."""
    places = defaultdict[tuple[object, ...], list[Finding]](list)
    for one in findings:
        cell = one.cell
        if not cell.is_control:
            places[cell.arm, cell.observers, cell.attack, cell.question].append(one)
    for held in places.values():
        most = max(len(one.cell.rounds) for one in held)
        whole = [one for one in held if len(one.cell.rounds) == most]
        scores = [one.scores[0] for one in whole if one.scores]
        blinds = [score.blind for score in scores if score.blind is not None]
        cell = whole[0].cell
        yield (
            *(cell.arm, together(cell.observers), cell.attack),
            scores[0].name if scores else "not checked",
            _number(fmean(score.value for score in scores) if scores else None),
            _number(fmean(blinds) if blinds else None),
            str(len(whole)),
        )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
