"""What a recording proves about itself: the result of its check."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median
from types import MappingProxyType
from typing import Literal, final

from overheard.archive.excerpt import printable_excerpt
from overheard.core.parties import Party

Reading = Literal["weights", "differences", "gradients", "codes"]
"""What a reply of a client holds: its weights; its weights minus those that it began from; a
gradient, which the server subtracts times a rate; or whole-number codes of its weights."""

Outcome = Literal["follows", "cannot tell", "contradicts"]
"""Whether each next broadcast follows from the broadcast and the replies before it."""

MOST_FAULTS = 8
"""Most faults of messages that are told; further ones are counted."""

NO_NUMBERS: Mapping[str, float] = MappingProxyType({})


class Reason(StrEnum):
    """Why a check cannot tell whether the next broadcasts follow; each is a clause."""

    NO_UPDATES = "the recording has no updates of clients"
    NO_NEXT_BROADCAST = "no round with updates has a next broadcast"
    REPLIES_UNSEEN = "the replies of other clients were not recorded"
    HIDDEN_COUNTS = (
        "the weights of the replies in the mean are hidden: neither the numbers of examples "
        "nor equal weights fit"
    )
    CHANGING_RATE = (
        "the server multiplies the mean of the replies by another rate in each round"
    )
    NOT_A_MEAN = "the server does not take the mean of the replies, but stays between them"
    NOISE = "the server adds noise of unstated size to the mean of the replies"
    HIDDEN_BY_NOISE = (
        "the server states so much noise that other readings of the replies, or none, would "
        "fit as well"
    )
    ASYNCHRONOUS = "the server also uses replies of earlier rounds in a step"
    ROUNDING = "the broadcasts are rounded more coarsely than the model changes in a round"
    UNKNOWN_STEP = "no known step of a server leads from the replies to the next broadcast"

    @property
    def supports_updates(self) -> bool:
        """Whether the updates were nevertheless found to have the right size and direction."""
        return self in {
            Reason.HIDDEN_COUNTS,
            Reason.CHANGING_RATE,
            Reason.NOT_A_MEAN,
            Reason.NOISE,
            Reason.ASYNCHRONOUS,
        }

    @property
    def supports_means(self) -> bool:
        """Whether the change of the model is that of the broadcasts, whatever the replies."""
        return self is not Reason.UNKNOWN_STEP


@final
@dataclass(frozen=True, slots=True)
class ServerStep:
    """How a broadcast and the replies to it may lead to the next broadcast.

    Args:
        algorithm: its name, such as "fed_avg".
        reading: what replies hold; "weights" for the replies as they are stored.
        base: how many broadcasts back the replies began; 0 = from the one of their round, -1 =
            from the one that is stored in the round after.
        saved: whether the model of a round was saved before or after its aggregation.
        mean: whether replies are weighted by their numbers of examples, or all alike.
        fitted: at most two numbers that were fitted, by name ("rate", "momentum").

    """

    algorithm: str
    reading: Reading = "weights"
    base: int = 0
    saved: Literal["before", "after"] = "before"
    mean: Literal["examples", "equal"] = "examples"
    fitted: Mapping[str, float] = field(default_factory=lambda: NO_NUMBERS)


@final
@dataclass(frozen=True, slots=True)
class Fit:
    """How well a step leads to the next broadcasts.

    Args:
        step: the step.
        residuals: by round that can be tested, |next - predicted| / |next - broadcast|, on the
            half of the numbers that nothing was fitted on.

    """

    step: ServerStep
    residuals: Mapping[int, float]


@final
@dataclass(frozen=True, slots=True)
class MessageFault:
    """What a single message, or all of a round, cannot be.

    Args:
        round: its round.
        sender: who sent it; None = all senders of the round.
        fault: what is wrong, as a sentence with its evidence.
        mend: what the user should do, as a clause.
        is_refusal: whether attacks on it would be wrong, so that they are refused; otherwise it
            is a warning.
        is_explained: whether a reading by which the replies lead on explains the fault.

    """

    round: int
    sender: Party | None
    fault: str
    mend: str
    is_refusal: bool = True
    is_explained: bool = False


@final
@dataclass(frozen=True, slots=True)
class RecordingProof:
    """What the messages of a recording prove about how they must be read.

    Args:
        outcome: whether the next broadcasts follow from the replies as they are stored.
        reason: why that cannot be told; None if it can.
        stated: how well the replies lead to the next broadcasts as they are stored; None if no
            round can be tested.
        best: the step that fits best, if it is another one.
        mend: what the user should do if the recording contradicts itself, as a clause; "" if
            nothing.
        faults: faults of messages.
        accepted: why the user accepts the recording in spite of a contradiction; "" = not.
        otherwise: what the replies are by the step that fits best, as a clause about "they"; ""
            if that is not another reading.

    """

    outcome: Outcome
    reason: Reason | None = None
    stated: Fit | None = None
    best: Fit | None = None
    mend: str = ""
    faults: tuple[MessageFault, ...] = ()
    accepted: str = ""
    otherwise: str = ""

    @property
    def is_refused(self) -> bool:
        """Whether attacks are refused, as their claims would rest on a wrong reading."""
        return self.outcome == "contradicts" and not self.accepted

    def allows_no_leak(self, reads: Literal["updates", "means"]) -> bool:
        """Return whether a verdict may say that nothing leaks; the only place that decides.

        A stated reason of the user (`accepted`) does not prove the reading, but it is the
        user's word that the page repeats, so the verdict may be given.

        Args:
            reads: whether the attacks read single updates, or the changes of the global model.

        """
        if self.outcome == "contradicts":
            return bool(self.accepted)
        if self.reason is None:
            return True
        return self.reason.supports_means if reads == "means" else self.reason.supports_updates

    @property
    def finding(self) -> str:
        """What was found, as a sentence."""
        if self.outcome == "follows":
            step = (self.best or self.stated or Fit(ServerStep("fed_avg"), {})).step
            return f"The replies lead to the next broadcasts by {describe_step(step)}."
        if self.outcome == "cannot tell":
            return (
                "Whether the replies lead to the next broadcasts cannot be told: "
                f"{self.reason}."
            )
        if self.best is not None and self.otherwise:
            return (
                "The replies do not lead to the next broadcasts as they are recorded, but they "
                f"do if {self.otherwise}, by {describe_step(self.best.step)}."
            )
        refusal = next((one.fault for one in self.faults if one.is_refusal), "")
        return f"The replies cannot be what they are recorded as: {refusal}."

    @property
    def evidence(self) -> str:
        """The residuals that it rests on, as a sentence; "" if no round can be tested."""
        parts = [
            f"{_describe_residuals(fit)} {label}"
            for fit, label in ((self.stated, "as recorded"), (self.best, "by this step"))
            if fit is not None and fit.residuals
        ]
        if not parts:
            return ""
        return (
            "Share of the change of the model that is not explained, on numbers that nothing "
            f"was fitted on: {'; '.join(parts)}."
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """All that a user should read: the finding, its evidence, what to do, and faults."""
        mend = f"To mend this: {self.mend}." if self.mend else ""
        accepted = (
            f"The user accepts it nevertheless: {printable_excerpt(self.accepted)}."
            if self.accepted and self.outcome == "contradicts"
            else ""
        )
        faults = (_describe_fault(one, self.mend) for one in self.faults[:MOST_FAULTS])
        left = len(self.faults) - MOST_FAULTS
        more = f"There are {left} more faults or warnings." if left > 0 else ""
        return tuple(filter(None, (self.finding, self.evidence, mend, accepted, *faults, more)))


def describe_step(step: ServerStep) -> str:
    """Return a server step in words."""
    mean = "the mean of the replies" + (" with equal weights" if step.mean == "equal" else "")
    name = "" if step.algorithm == "fed_avg" else f" under {step.algorithm}"
    numbers = " and ".join(f"{key} {value:.4g}" for key, value in step.fitted.items())
    return f"{mean}{name}{f' with {numbers} (fitted)' if numbers else ''}"


def _describe_fault(fault: MessageFault, mend: str) -> str:
    """Return a fault as a sentence; what is told already need not be told again."""
    kind = "Fault" if fault.is_refusal else "Warning"
    advice = "" if fault.mend == mend else f"; {fault.mend}"
    return f"{kind}, round {fault.round}: {fault.fault}{advice}."


def _describe_residuals(fit: Fit) -> str:
    count = len(fit.residuals)
    return f"{median(fit.residuals.values()):.2g} (median of {count} round{'s' * (count != 1)})"
