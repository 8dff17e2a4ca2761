"""The rows of `findings.json`: what an audit writes, and what a gate and the evidence read.

The keys of a row are its fields, in order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isclose, isfinite
from types import MappingProxyType
from typing import Annotated, Literal, Self, final

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    model_validator,
)

from overheard.consistency.proof import Outcome
from overheard.core.parties import COHORT, is_client, parse_party
from overheard.core.task import Utility
from overheard.disk.bounded_errors import BoundedModel
from overheard.findings.control_draws import ControlDraws
from overheard.findings.refusal_kind import RefusalKind
from overheard.findings.threat_verdict import NO_LEAK, TargetKind, Verdict
from overheard.statistics.estimate import TAIL, Estimate, IntervalBasis
from overheard.statistics.judgement import VERDICT_LEVEL

Better = Literal["lower", "higher"]
"""The directions of scores, as in `core.scorer`, which would load what audits need."""

Count = Annotated[int, Field(ge=0, lt=2**63)]

PositiveCount = Annotated[int, Field(ge=1, lt=2**63)]

NonNegative = Annotated[FiniteFloat, Field(ge=0)]


def _finite_or_none(value: object) -> object:
    return None if isinstance(value, float) and not isfinite(value) else value


Finite = BeforeValidator(_finite_or_none)
"""Makes NaN and infinity None, which JSON writes as null."""

Figure = Annotated[FiniteFloat | None, Finite]

Probability = Annotated[Annotated[FiniteFloat, Field(ge=0, le=1)] | None, Finite]

Size = Annotated[NonNegative | None, Finite]

NOTHING: Mapping[str, object] = MappingProxyType({})

ROUNDING = 1e-9
"""By how much, of its size, a number may differ from another one that it is computed from."""


def is_above(one: float, other: float) -> bool:
    """Return whether a number is above another one by more than rounding.

    >>> is_above(0.3, 0.1 + 0.2), is_above(0.31, 0.3)
    (False, True)
    """
    return one > other and not isclose(one, other, rel_tol=ROUNDING, abs_tol=ROUNDING)


def refuse_repeated(key: str, values: Sequence[object]) -> None:
    """Raise `ValueError` if a list of distinct values has one twice."""
    if len({*values}) < len(values):
        raise ValueError(f"{key!r} has a value twice")


class DocumentPart(BoundedModel):
    """A part of the document, with strict types, as a file of it is untrusted.

    Keys that nobody reads here are ignored.
    """

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    @classmethod
    def of(cls, source: object, more: Mapping[str, object] = NOTHING) -> Self:
        """Return the part that has the fields `more`, and all others from `source`.

        Attributes of `source` that are objects become parts likewise.

        Raises:
            ValidationError: if a value is out of range, or contradicts another one.

        """
        others = (name for name in cls.model_fields if name not in more)
        fields = {name: getattr(source, name) for name in others}
        return cls.model_validate({**fields, **more}, strict=False, from_attributes=True)


@final
class IntervalEstimate(DocumentPart):
    """A mean with its interval; see `statistics.estimate.Estimate`. None = not finite."""

    mean: Figure
    low: Figure
    high: Figure
    basis: IntervalBasis | None = None
    degrees: Annotated[Annotated[FiniteFloat, Field(gt=0)] | None, Finite] = None

    def low_among(self, rows: int) -> float | None:
        """Return the lower end that all of this many rows keep together with 97.5 %."""
        if self.mean is None or self.low is None:
            return self.low
        return self._estimate(self.mean).low_at(TAIL / rows)

    def high_among(self, rows: int) -> float | None:
        """Return the upper end that all of this many rows keep together with 97.5 %."""
        if self.mean is None or self.high is None:
            return self.high
        return self._estimate(self.mean).high_at(TAIL / rows)

    def _estimate(self, mean: float) -> Estimate:
        return Estimate(mean, self.low, self.high, self.basis, self.degrees)

    @model_validator(mode="after")
    def _check_order(self) -> "IntervalEstimate":
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(
                f"the interval's upper end {self.high} is below its lower end {self.low}"
            )
        if self.mean is not None:
            low = self.mean if self.low is None else self.low
            high = self.mean if self.high is None else self.high
            if is_above(low, self.mean) or is_above(self.mean, high):
                raise ValueError(
                    f"the mean {self.mean} is outside of its interval from {low} to {high}"
                )
        return self


@dataclass(frozen=True, slots=True)
class RowKey:
    """The key of a summary row, without the score.

    Args:
        arm: name of the arm.
        observers: the observers, who pool their views, in alphabetical order.
        attack: name of the attack in the plan.
        question: name of the question.
        about: whether the targets are single clients or the cohort.
        rounds: the observed rounds.

    """

    arm: str
    observers: tuple[str, ...]
    attack: str
    question: str
    about: TargetKind
    rounds: tuple[int, ...]


@final
class SummaryRow(DocumentPart):
    """One score of one attack over all its targets; see `findings.score_row.ScoreRow`."""

    arm: str
    observers: tuple[str, ...]
    attack: str
    question: str
    about: TargetKind
    rounds: tuple[Count, ...]
    score: str
    better: Better
    value: IntervalEstimate
    blinds: dict[str, Figure]
    references: dict[str, Figure]
    blind: Figure
    gain: IntervalEstimate | None
    targets: PositiveCount
    seeds: PositiveCount

    @model_validator(mode="after")
    def _check_row(self) -> "SummaryRow":
        refuse_repeated("observers", self.observers)
        refuse_repeated("rounds", self.rounds)
        known = [value for value in self.blinds.values() if value is not None]
        if self.blind is None:
            if self.gain is not None:
                raise ValueError("`gain` is over a guess, but `blind` states none")
        elif not known or is_above(min(known), self.blind) or is_above(self.blind, max(known)):
            raise ValueError(f"`blind` is {self.blind}, which none of `blinds` is")
        return self

    @property
    def best_guess(self) -> float | None:
        """The mean score of the best uninformed guess; None = there is none."""
        known = [value for value in self.blinds.values() if value is not None]
        return (max if self.better == "higher" else min)(known, default=None)

    @property
    def largest_gain(self) -> float | None:
        """What a perfect claim would gain; scores end at 0 or at 1. None = no guess."""
        if self.best_guess is None:
            return None
        return abs((0.0 if self.better == "lower" else 1.0) - self.best_guess)

    @property
    def key(self) -> RowKey:
        """The key of the row, without the score."""
        observers = tuple(sorted(self.observers))
        return RowKey(self.arm, observers, self.attack, self.question, self.about, self.rounds)


@final
class VerdictRow(DocumentPart):
    """The verdict on a threat; see `findings.threat_verdict.ThreatVerdict`.

    Args:
        score: the score that is judged; "" = no attack was measured.
        sentence: the verdict in words.

    """

    arm: str
    observers: tuple[str, ...]
    question: str
    about: TargetKind
    score: str
    sentence: str
    verdict: Verdict
    attack: str
    p_value: Probability
    smallest_p_value: Probability
    gain: IntervalEstimate | None
    margins: dict[str, NonNegative]
    is_below_margin: bool
    why: str
    shared_gains: dict[str, Figure]
    withheld: str = ""

    @model_validator(mode="after")
    def _check_verdict(self) -> "VerdictRow":
        if self.verdict == "leaks" and (self.p_value is None or self.p_value > VERDICT_LEVEL):
            raise ValueError(f"verdict 'leaks' contradicts the p-value {self.p_value}")
        gain = None if self.gain is None else self.gain.mean
        if self.verdict == "leaks" and (gain is None or gain <= 0):
            raise ValueError("verdict 'leaks' contradicts `gain`, which is not above 0")
        if self.verdict == "no leak above margin" and not self.is_below_margin:
            raise ValueError(f"verdict {self.verdict!r} contradicts `is_below_margin`")
        if self.verdict in NO_LEAK and self.withheld:
            raise ValueError(f"verdict {self.verdict!r} contradicts `withheld`")
        if self.why and self.verdict != "not enough to judge":
            raise ValueError(f"verdict {self.verdict!r} contradicts `why`")
        self._check_measurement()
        return self

    def _check_measurement(self) -> None:
        """Raise `ValueError` unless the test and the gain are those of one measurement."""
        refuse_repeated("observers", self.observers)
        is_tested = self.p_value is not None
        if is_tested != (self.smallest_p_value is not None) or (is_tested and not self.attack):
            raise ValueError("`p_value`, `smallest_p_value` and `attack` require each other")
        if self.verdict in ("unchecked", "unmeasured") and (
            self.gain is not None or self.p_value is not None
        ):
            raise ValueError(f"verdict {self.verdict!r} contradicts `gain` or `p_value`")
        if self.is_below_margin:
            high = None if self.gain is None else self.gain.high
            margin = self.margins.get(self.score)
            if high is None or not self.margins or (margin is not None and high >= margin):
                raise ValueError(
                    f"`is_below_margin` contradicts the gain of at most {high} and `margins`"
                )


@final
class RecordingFaultRow(DocumentPart):
    """A fault of a message of the recording; see `consistency.proof.MessageFault`."""

    round: Count
    sender: str | None
    fault: str
    mend: str
    is_refusal: bool


@final
class RecordingRow(DocumentPart):
    """What the check of the recording found; see `consistency.proof.RecordingProof`.

    Args:
        outcome: "follows", "cannot tell" or "contradicts"; None = Overheard failed to check.
        reason: why it cannot tell; None if it can.
        sentences: all that a reader should know of it.
        mend: what to do about a contradiction; "" = nothing.
        accepted: why the user accepts it in spite of a contradiction; "" = not.
        faults: faults of messages.

    """

    outcome: Outcome | None
    reason: str | None
    sentences: tuple[str, ...]
    mend: str
    accepted: str
    faults: tuple[RecordingFaultRow, ...]


class CellRow(DocumentPart):
    """The cell of a finding or refusal; see `findings.finding.Cell`."""

    arm: str
    seed: Count
    observers: tuple[str, ...]
    attack: str
    settings: str
    question: str
    rounds: tuple[Count, ...]
    is_control: bool
    part: str
    label: str
    is_adaptive: bool
    control: ControlDraws
    control_number: Count


@final
class TimelineRow(DocumentPart):
    """Evidence round by round; see `core.claims.Timeline`."""

    rounds: tuple[int, ...]
    statistic: tuple[Figure, ...]
    threshold: tuple[Figure, ...] | None
    false_alarm_rate: Figure
    alarm: int | None
    since: int | None


@final
class LearningCurveRow(DocumentPart):
    """An attacker's own error; see `core.claims.LearningCurve`."""

    clients: tuple[int, ...]
    errors: tuple[Figure, ...]
    trained: int
    planned: int


@final
class ClaimScore(DocumentPart):
    """A score of one claim; see `core.scorer.Score`."""

    name: str
    value: Figure
    better: Better
    blinds: dict[str, Figure]
    references: dict[str, Figure]
    gain: Figure


@final
class FindingRow(CellRow):
    """One attack's claim; see `findings.finding.Finding`.

    What only the tests of verdicts need is left out. `targets` lists whom the claim is about.
    If these are several, as for a joint claim, `target` is `COHORT`.
    """

    target: str
    claimed: tuple[Figure, ...]
    true: tuple[Figure, ...]
    low: tuple[Figure, ...] | None
    high: tuple[Figure, ...] | None
    timeline: TimelineRow | None
    true_since: int | None
    candidates: tuple[str, ...]
    none_of_them: Figure
    true_user: str | None
    is_checked: bool
    blind: dict[str, tuple[Figure, ...]]
    doubt: str | None
    learning_curve: LearningCurveRow | None
    scores: tuple[ClaimScore, ...]
    targets: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check_targets(self) -> "FindingRow":
        check_targets(self.target, self.targets, self.observers)
        return self


def check_targets(target: str, targets: Sequence[str], observers: Sequence[str] = ()) -> None:
    """Check whom a claim is about: its target, or two or more clients that do not observe.

    Args:
        target: the target of the claim; `COHORT` if it is joint.
        targets: the same target, or the clients of a joint claim; () = as the target says.
        observers: the observers, as far as they matter.

    Raises:
        ValueError: if they are no such clients, or one is named twice.

    """
    if not targets or [*targets] == [target]:
        return
    refuse_repeated("targets", targets)
    strangers = [
        name for name in targets if not is_client(parse_party(name)) or name in observers
    ]
    if strangers:
        raise ValueError(f"'targets' names {strangers[0]}, which is no client under attack")
    if len(targets) < 2 or target != COHORT:
        raise ValueError("'targets' names clients of a claim that is not about several")


@final
class RefusalRow(CellRow):
    """An attack that could not run on one target; see `findings.finding.Refusal`."""

    target: str
    missing: tuple[str, ...]
    kind: RefusalKind = "missing"

    @property
    def key(self) -> RowKey:
        """The key that the attack's summary rows would have."""
        observers = tuple(sorted(self.observers))
        about: TargetKind = "cohort" if self.target == COHORT else "clients"
        return RowKey(self.arm, observers, self.attack, self.question, about, self.rounds)


@final
class BytesSent(DocumentPart):
    """Bytes sent in a run; see `findings.traffic.Traffic`."""

    up: Count
    down: Count
    answers: Count
    heard: Count


@final
class RunSeconds(DocumentPart):
    """Time of a run in seconds; see `archive.run_time.RunTime`."""

    wall: Size
    cores: Size


@final
class DefenseRow(DocumentPart):
    """One defense of an arm; see `findings.finding.ArmDefense`."""

    settings: str
    enforced_at: str
    switched_off_by: str
    promise: str


@final
class ClearTextRow(DocumentPart):
    """One kind of data that messages contain besides weights; see `findings.metadata`."""

    kind: str
    text: str


@final
class LostReplyRow(DocumentPart):
    """Messages of one party that a run lacks; see `findings.lost_replies.LostReply`."""

    party: str
    rounds: tuple[Count, ...]
    is_unrecorded: bool
    reason: str


Share = Annotated[FiniteFloat, Field(ge=0, le=1)]


@final
class SumsRow(DocumentPart):
    """What the sums of a run reveal; see `participation.sums_reading.SumsReading`."""

    clients: PositiveCount
    rounds: PositiveCount
    smallest_cohort: PositiveCount
    largest_cohort: PositiveCount
    fixed_groups: PositiveCount
    rank: PositiveCount
    resolution: Share
    largest_resolution: Share
    by_round: tuple[Share, ...]
    amplification: dict[Count, Size]
    group_at_least: PositiveCount
    group_at_most: PositiveCount
    group: tuple[str, ...]
    one_apart: Count
    counts_known: Count | None
    is_weighted: bool

    @model_validator(mode="after")
    def _check_bounds(self) -> "SumsRow":
        if self.group_at_least > self.group_at_most:
            raise ValueError("`group_at_least` is above `group_at_most`")
        if is_above(self.resolution, self.largest_resolution):
            raise ValueError("`resolution` is above `largest_resolution`")
        return self


@final
class RunRow(DocumentPart):
    """One run; see `findings.finding.ArmRun`. What mechanisms guarantee is in `EpsilonRow`."""

    arm: str
    seed: Count
    defenses: tuple[DefenseRow, ...]
    accuracy: dict[Count, Probability]
    is_control: bool
    control: ControlDraws
    control_number: Count
    answers: Count
    missing: Count
    bytes: BytesSent | None
    seconds: RunSeconds | None
    has_truth: bool
    in_clear: tuple[ClearTextRow, ...]
    are_defenses_known: bool
    utility: Utility
    unrecorded: Count = 0
    lost_replies: tuple[LostReplyRow, ...] = ()
    clients: Count = 0
    sums: SumsRow | None = None

    @model_validator(mode="after")
    def _check_control(self) -> "RunRow":
        if not self.is_control and (self.control or self.control_number):
            raise ValueError("the run is no control, but `control` says which one it is")
        return self

    @model_validator(mode="after")
    def _check_unrecorded(self) -> "RunRow":
        listed = sum(len(one.rounds) for one in self.lost_replies if one.is_unrecorded)
        # Of many lost replies not all are listed, and of a control none.
        if listed > self.unrecorded:
            raise ValueError(
                f"`unrecorded` is {self.unrecorded}, but `lost_replies` lists {listed}"
            )
        return self

    @property
    def last_accuracy(self) -> float | None:
        """The accuracy after the last tested round; None = unknown, or no accuracy."""
        if self.utility != "accuracy":
            return None
        return self.accuracy[max(self.accuracy)] if self.accuracy else None
