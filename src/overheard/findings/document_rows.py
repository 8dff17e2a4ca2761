"""The parts of `findings.json` that are read back, with strict types as the file is untrusted.

Each row defines some of the keys that `document` and `epsilon.entry` write.
"""

from dataclasses import dataclass
from math import inf
from typing import Annotated, Literal, final

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from overheard.core.mechanism import PrivacyUnit
from overheard.core.parties import COHORT
from overheard.core.task import Utility
from overheard.findings.control_draws import ControlDraws
from overheard.findings.threat_verdict import TargetKind, Verdict
from overheard.statistics.estimate import TAIL, Estimate, IntervalBasis
from overheard.statistics.judgement import VERDICT_LEVEL

Better = Literal["lower", "higher"]
"""The directions of scores, as in `core.scorer`, which would load what audits need."""

EpsilonVerdict = Literal[
    "flawed", "uncovered", "overclaimed", "violated", "contradicted", "holds", "unasked",
    "refused", "unlike", "unchecked", "unaccounted",
]  # fmt: skip
"""flawed: the mechanism guarantees nothing; uncovered: these observers read updates before the
noise is added; overclaimed: the stated epsilon is below that of the settings.

violated: attacks on canaries prove a larger epsilon than claimed. contradicted: attacks on
other records prove a larger one if the records are independent. holds: none of these.

The others mean that no claim was tested. unasked: no membership attack by these observers;
refused: no such attack could run; unlike: members and non-members are not exchangeable;
unchecked: the members are unknown.

unaccounted: no epsilon is stated for the run, and no accountant is installed."""

Count = Annotated[int, Field(ge=0, lt=2**63)]

NonNegative = Annotated[FiniteFloat, Field(ge=0)]


class DocumentPart(BaseModel):
    """A part of the document; keys that nobody reads here are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


@final
class IntervalEstimate(DocumentPart):
    """A mean with its interval; see `statistics.estimate.Estimate`. None = not finite."""

    mean: float | None
    low: float | None
    high: float | None
    basis: IntervalBasis | None = None
    degrees: Annotated[FiniteFloat, Field(gt=0)] | None = None

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
    gain: IntervalEstimate | None
    targets: Count
    seeds: Count
    blinds: dict[str, FiniteFloat | None]

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
    """The verdict on a threat; see `findings.threat_verdict.ThreatVerdict`."""

    arm: str
    observers: tuple[str, ...]
    question: str
    about: TargetKind
    verdict: Verdict
    attack: str
    p_value: Annotated[FiniteFloat, Field(ge=0, le=1)] | None
    smallest_p_value: Annotated[FiniteFloat, Field(ge=0, le=1)] | None
    gain: IntervalEstimate | None
    margins: dict[str, NonNegative]
    is_below_margin: bool
    why: str
    score: str
    sentence: str
    shared_gains: dict[str, FiniteFloat]

    @model_validator(mode="after")
    def _check_verdict(self) -> "VerdictRow":
        if self.verdict == "leaks" and (self.p_value is None or self.p_value > VERDICT_LEVEL):
            raise ValueError(f"verdict 'leaks' contradicts the p-value {self.p_value}")
        gain = None if self.gain is None else self.gain.mean
        if self.verdict == "leaks" and (gain is None or gain <= 0):
            raise ValueError("verdict 'leaks' contradicts `gain`, which is not above 0")
        if self.verdict == "no leak above margin" and not self.is_below_margin:
            raise ValueError(f"verdict {self.verdict!r} contradicts `is_below_margin`")
        return self


@final
class RefusalRow(DocumentPart):
    """An attack that could not run on one target; see `findings.finding.Refusal`."""

    arm: str
    observers: tuple[str, ...]
    attack: str
    question: str
    rounds: tuple[Count, ...]
    target: str
    missing: tuple[str, ...]

    @property
    def key(self) -> RowKey:
        """The key that the attack's summary rows would have."""
        observers = tuple(sorted(self.observers))
        about: TargetKind = "cohort" if self.target == COHORT else "clients"
        return RowKey(self.arm, observers, self.attack, self.question, about, self.rounds)


@final
class BytesSent(DocumentPart):
    """Bytes sent in a run."""

    up: Count
    down: Count


@final
class RunSeconds(DocumentPart):
    """Wall-clock seconds of a run."""

    wall: NonNegative | None


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
class RunRow(DocumentPart):
    """One run; see `findings.finding.ArmRun`."""

    arm: str
    seed: Count
    is_control: bool
    accuracy: dict[Count, Annotated[float, Field(ge=0, le=1)] | None]
    bytes: BytesSent | None
    seconds: RunSeconds | None
    control: ControlDraws
    control_number: Count
    has_truth: bool
    defenses: tuple[DefenseRow, ...]
    are_defenses_known: bool
    in_clear: tuple[ClearTextRow, ...]
    utility: Utility

    @property
    def last_accuracy(self) -> float | None:
        """The accuracy after the last tested round; None = unknown, or no accuracy."""
        if self.utility != "accuracy":
            return None
        return self.accuracy[max(self.accuracy)] if self.accuracy else None


@final
class EpsilonLowerBound(DocumentPart):
    """A lower bound on epsilon that an attack proves; see `epsilon.threshold_bound`."""

    at_least: NonNegative
    attack: str


@final
class EpsilonRow(DocumentPart):
    """The verdict on one mechanism of an arm, for one group of observers.

    See `epsilon.epsilon_results.EpsilonResult`.

    Args:
        arm: name of the arm.
        defense: settings of the defense with the mechanism.
        observers: the observers, who pool their views; () = an observer of the global models
            alone.
        verdict: see `EpsilonVerdict`.
        flaw: why the mechanism guarantees nothing; "" = no flaw is known.
        unit: the unit of privacy that epsilon refers to.
        delta: the delta of that epsilon.
        ceiling: the smallest stated or recomputed epsilon; None = unknown if the verdict is
            "unaccounted", else infinite.
        measured: the largest lower bound that attacks prove; None = not measured.
        claimed: the stated epsilon; None = none is stated.
        claimed_for: what the stated epsilon covers, such as "run"; None = none is stated.
        is_recomputed: whether accountants recomputed epsilon from the settings.
        pld: epsilon by the distribution of the privacy loss; None = infinite, or not
            recomputed.
        rdp: epsilon by Renyi divergences; None = infinite, or not recomputed.
        drawn: epsilon that counts on the sampling of clients; None = it does not apply.

    """

    arm: str
    defense: str
    observers: tuple[str, ...]
    verdict: EpsilonVerdict
    flaw: str
    unit: PrivacyUnit
    delta: Annotated[float, Field(gt=0, lt=1)]
    ceiling: NonNegative | None
    measured: EpsilonLowerBound | None
    claimed: NonNegative | None
    claimed_for: str | None
    is_recomputed: bool
    pld: NonNegative | None
    rdp: NonNegative | None
    drawn: NonNegative | None

    @property
    def mechanism(self) -> str:
        """The class name at the start of the settings, such as "LocalDp"."""
        return self.defense.partition("(")[0]

    @property
    def guaranteed_epsilon(self) -> float | None:
        """The epsilon that holds as far as is known; None if unknown.

        Infinite also if the claim is refuted by attacks or by its own settings, as a wrong
        number guarantees nothing. Unknown if attacks contradict it without proof.
        """
        if self.verdict in {"unaccounted", "contradicted"}:
            return None
        if self.ceiling is None or self.verdict in {"violated", "overclaimed"}:
            return inf
        return self.ceiling

    @model_validator(mode="after")
    def _check_verdict(self) -> "EpsilonRow":
        at_least = None if self.measured is None else self.measured.at_least
        match self.verdict:
            case "flawed" | "uncovered" | "unaccounted":
                is_consistent = self.ceiling is None
            case "unasked" | "refused" | "unlike" | "unchecked":
                is_consistent = at_least is None
            case "violated" | "contradicted":
                is_consistent = (
                    at_least is not None
                    and self.ceiling is not None
                    and at_least > self.ceiling
                )
            case "holds":
                # The bound may exceed the ceiling: see `_is_disproved` in
                # `epsilon.epsilon_results`.
                is_consistent = at_least is not None
            case "overclaimed":
                is_consistent = True
        if not is_consistent:
            raise ValueError(f"verdict {self.verdict!r} contradicts `ceiling` and `measured`")
        return self
