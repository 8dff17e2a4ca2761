"""What is read of a document of findings, row by row: a stranger's, so types are strict.

Each row names some of the keys that `document` and `epsilon.entry` write.
"""

from dataclasses import dataclass
from math import inf
from typing import Annotated, Literal, final

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from overheard.core.mechanism import Unit
from overheard.core.parties import COHORT
from overheard.core.scorer import Better
from overheard.findings.exposures import About

Standing = Literal[
    "flawed", "uncovered", "overclaimed", "violated", "holds", "unasked", "refused", "unlike",
    "unchecked", "unaccounted",
]  # fmt: skip
"""flawed: guarantees nothing to anybody; uncovered: these observers read what is not noised
yet; violated: attacks prove more than is claimed; overclaimed: less is stated than the settings
come to; holds: neither. Else nothing was held against a claim: unasked, no attack on membership
by these observers; refused, none could run; unlike, clients' records are not alike to those of
nobody; unchecked, nobody told which records were trained on; unaccounted, nothing is stated for
the run and there is no accountant."""

Count = Annotated[int, Field(ge=0, lt=2**63)]

NotNegative = Annotated[FiniteFloat, Field(ge=0)]


class DocumentPart(BaseModel):
    """A part of the document. Keys that we do not know are those of a later writer."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


@final
class Bounds(DocumentPart):
    """A figure with its interval; None = no number, or no interval."""

    mean: float | None
    low: float | None
    high: float | None

    @model_validator(mode="after")
    def _in_order(self) -> "Bounds":
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"the interval ends at {self.high} before it begins at {self.low}")
        return self


@dataclass(frozen=True, slots=True)
class RowPlace:
    """Who asked what of whom.

    Args:
        arm: name of the federation's variant.
        observers: who pooled what they read, in the order of the alphabet.
        attack: its name in the plan.
        question: name of its scorer.
        about: each client by itself, or all of them as one.
        rounds: that were listened to.

    """

    arm: str
    observers: tuple[str, ...]
    attack: str
    question: str
    about: About
    rounds: tuple[int, ...]


@final
class SummaryRow(DocumentPart):
    """What one attack got out of all its targets, by one score; see `findings.row.Row`."""

    arm: str
    observers: tuple[str, ...]
    attack: str
    question: str
    about: About
    rounds: tuple[Count, ...]
    score: str
    better: Better
    value: Bounds
    gain: Bounds | None
    targets: Count
    seeds: Count

    @property
    def place(self) -> RowPlace:
        """Who asked what of whom."""
        observers = tuple(sorted(self.observers))
        return RowPlace(
            self.arm, observers, self.attack, self.question, self.about, self.rounds
        )


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
    def place(self) -> RowPlace:
        """Who would have asked what of whom."""
        observers = tuple(sorted(self.observers))
        about: About = "cohort" if self.target == COHORT else "clients"
        return RowPlace(self.arm, observers, self.attack, self.question, about, self.rounds)


@final
class Sent(DocumentPart):
    """Bytes that travelled in a run."""

    up: Count
    down: Count


@final
class Took(DocumentPart):
    """Seconds of a run."""

    wall: NotNegative | None


@final
class RunRow(DocumentPart):
    """One federation: see `findings.finding.ArmRun`.

    Earlier writers counted neither bytes nor time.
    """

    arm: str
    seed: Count
    is_control: bool
    accuracy: dict[Count, Annotated[float, Field(ge=0, le=1)] | None]
    bytes: Sent | None = None
    seconds: Took | None = None


@final
class ProvenEpsilon(DocumentPart):
    """What attacks prove of an epsilon; see `epsilon.bound`."""

    at_least: NotNegative
    attack: str


@final
class EpsilonRow(DocumentPart):
    """How a mechanism of an arm stands towards some observers.

    See `epsilon.epsilon.EpsilonLine`.

    Args:
        arm: its name.
        defense: the settings of the one that has the mechanism.
        observers: who pool what they read; () = whoever reads the global models alone.
        verdict: see `Standing`.
        flaw: why it guarantees nothing to anybody; "" = nothing is known to be wrong with it.
        unit: whose data an epsilon is about.
        delta: that goes with it.
        ceiling: the least epsilon that is stated or recomputed; None = unknown where the
            verdict is "unaccounted", else infinite.
        measured: the most that attacks prove; None = nothing was measured.

    """

    arm: str
    defense: str
    observers: tuple[str, ...]
    verdict: Standing
    flaw: str
    unit: Unit
    delta: Annotated[float, Field(gt=0, lt=1)]
    ceiling: NotNegative | None
    measured: ProvenEpsilon | None

    @property
    def mechanism(self) -> str:
        """The name at the start of the settings, such as "LocalDp"."""
        return self.defense.partition("(")[0]

    @property
    def guaranteed(self) -> float | None:
        """The epsilon that holds for all that is known; None where nothing is.

        Infinite too where the claim is refuted, by attacks or by its own settings: a number
        that is known to be wrong guarantees nothing.
        """
        if self.verdict == "unaccounted":
            return None
        if self.ceiling is None or self.verdict in {"violated", "overclaimed"}:
            return inf
        return self.ceiling

    @model_validator(mode="after")
    def _bears_out_its_verdict(self) -> "EpsilonRow":
        least = None if self.measured is None else self.measured.at_least
        match self.verdict:
            case "flawed" | "uncovered" | "unaccounted":
                follows = self.ceiling is None
            case "unasked" | "refused" | "unlike" | "unchecked":
                follows = least is None
            case "violated":
                follows = (
                    least is not None and self.ceiling is not None and least > self.ceiling
                )
            case "holds":
                # It may be above the ceiling: see `_is_disproved` in `epsilon.epsilon`.
                follows = least is not None
            case "overclaimed":
                follows = True
        if not follows:
            raise ValueError(f"{self.verdict!r} does not follow from `ceiling` and `measured`")
        return self
