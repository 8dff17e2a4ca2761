"""The rows of `findings.json` on differential privacy: epsilon, and faults of mechanisms.

Epsilon has bounds that attacks prove, and verdicts on claims; see `epsilon`. Faults are those
that the doctor finds; see `doctor.criticism`.
"""

from dataclasses import dataclass
from math import inf
from typing import Annotated, Literal, final

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    FiniteFloat,
    Tag,
    model_validator,
)

from overheard.core.mechanism import (
    INSTALL_HINT,
    AccountUnit,
    ClaimStatus,
    ClientSampling,
    EpsilonScope,
    PrivacyRelation,
    PrivacyUnit,
    RecordSampling,
    Site,
)
from overheard.findings.document_rows import (
    Count,
    DocumentPart,
    Figure,
    IntervalEstimate,
    NonNegative,
    PositiveCount,
    Probability,
    Size,
    refuse_repeated,
)
from overheard.findings.privacy.canary_scores import ClientEstimateRow

EpsilonVerdict = Literal[
    "flawed", "outside guarantee", "false", "violated", "contradicted", "not confirmed",
    "estimate", "holds", "not tested", "refused", "not exchangeable", "unchecked",
    "unaccounted",
]  # fmt: skip
"""flawed: the mechanism guarantees nothing; outside guarantee: these observers read updates
before the noise is added; false: the stated epsilon is below a lower bound of that of the
settings; not confirmed: it is below an upper bound, and not below a lower one.

violated: attacks on canaries prove a larger epsilon than claimed. contradicted: attacks on
other records prove a larger one if the records are independent. estimate: attacks on canaries
find a larger one, but how they are counted was changed after the canaries were drawn. holds:
none of these.

The others mean that no claim was tested. not tested: no membership attack by these
observers; refused: no such attack could run; not exchangeable: members and non-members are not
exchangeable; unchecked: the members are unknown.

unaccounted: no epsilon is stated, and none was recomputed: the row's `doubt` says why."""

UNPROVEN: tuple[EpsilonVerdict, ...] = ("unaccounted", "contradicted", "estimate")
"""Verdicts under which it is unknown what is guaranteed."""

OLDER_VERDICT = (
    "an older version of Overheard compared the claim with an upper bound alone: audit again"
)
"""Why a claim that an older version called smaller than its settings is not confirmed."""


@final
class BoundByThreshold(DocumentPart):
    """A lower bound on epsilon that an attack proves; see `epsilon.threshold_bound`.

    Args:
        at_least: the bound, at 95 % confidence.
        attack: the attack that proves it.
        threshold: records with a larger score are taken for members.
        found: the share of members above it.
        passed: the share of non-members above it.
        members: members that the bound was computed on.
        outsiders: non-members, likewise.

    """

    at_least: NonNegative
    attack: str
    threshold: Figure
    found: IntervalEstimate
    passed: IntervalEstimate
    members: PositiveCount
    outsiders: PositiveCount

    @model_validator(mode="after")
    def _check_shares(self) -> "BoundByThreshold":
        for name, share in (("found", self.found), ("passed", self.passed)):
            if share.mean is not None and not 0 <= share.mean <= 1:
                raise ValueError(f"`{name}` is {share.mean}, but a share lies in [0, 1]")
        return self


@final
class BoundByGuesses(DocumentPart):
    """A lower bound on epsilon from guesses about canaries; see `epsilon.guess_bound`.

    Args:
        at_least: the bound.
        attack: the attack that proves it.
        above: canaries with a larger score are guessed to be members; None = none.
        below: canaries with a smaller score are guessed to be non-members; None = none.
        said_in: canaries guessed to be members.
        said_out: canaries guessed to be non-members.
        right: correct guesses.
        members: members that the bound was computed on.
        outsiders: non-members, likewise.
        method: "curve" = for a claim that is a trade-off curve (Mahloujifar et al. 2024),
            "guesses" = for a bare epsilon (Steinke et al. 2023).
        level: the probability with which a true claim is refuted.
        digest: digest of what the plan says of the bound; "" = not known.
        estimate: a sharper figure from the same guesses, which proves nothing (Xiang et al.
            2025); None = there is none.

    """

    at_least: NonNegative
    attack: str
    above: Figure
    below: Figure
    said_in: Count
    said_out: Count
    right: Count
    members: Count
    outsiders: Count
    method: Literal["curve", "guesses"] = "guesses"
    level: Annotated[float, Field(gt=0, lt=1)] = 0.05
    digest: str = ""
    estimate: Size = None

    @model_validator(mode="after")
    def _check_counts(self) -> "BoundByGuesses":
        guesses, canaries = self.said_in + self.said_out, self.members + self.outsiders
        if self.right > guesses or guesses > canaries:
            raise ValueError(
                f"{self.right} of {guesses} guesses are right about {canaries} canaries, which "
                "cannot be"
            )
        return self


def _evidence(bound: object) -> str:
    """Return what a bound rests on, so that an error is about bounds of that kind alone."""
    is_read = isinstance(bound, dict) and "threshold" in bound
    return "threshold" if is_read or isinstance(bound, BoundByThreshold) else "guesses"


EpsilonBoundRow = Annotated[
    Annotated[BoundByThreshold, Tag("threshold")] | Annotated[BoundByGuesses, Tag("guesses")],
    Discriminator(_evidence),
]


def _current_verdict(verdict: object) -> object:
    """Return the word for a verdict of an older version, which knew no lower bounds."""
    return "not confirmed" if verdict == "overclaimed" else verdict


@final
class ClientEpsilonRow(DocumentPart):
    """The epsilon of one record of a client; see `core.accounting.client_accounts`.

    Args:
        client: the client.
        messages: number of messages with what it trained.
        steps: number of its steps.
        epsilon: upper bound; None = infinite.
        problem: why it is unknown, and so infinite; "" = it is known.

    """

    client: str
    messages: Count
    steps: Count
    epsilon: Size
    problem: str


@final
class UnitEpsilonRow(DocumentPart):
    """The epsilon of records of a client that are added or removed together.

    Args:
        unit: one record, several records of one user, or all records of the client.
        records: how many records that are.
        epsilon: upper bound; None = infinite, or so large that nothing is protected.

    """

    unit: AccountUnit
    records: PositiveCount
    epsilon: Size


@final
class ClientEpsilonsRow(DocumentPart):
    """The accountants of all clients of a run, by the client with the largest epsilon.

    Args:
        clients: number of clients.
        largest: the account with the largest epsilon.
        median: the one in the middle.
        smallest: the one with the smallest epsilon.
        units: epsilon of the first of these for one record, a user and the client.
        as_poisson: epsilon of one record if its shuffled batches were Poisson samples, which is
            not this run's; None = they are not shuffled, or it is infinite.

    """

    clients: PositiveCount
    largest: ClientEpsilonRow
    median: ClientEpsilonRow
    smallest: ClientEpsilonRow
    units: tuple[UnitEpsilonRow, ...]
    as_poisson: Size


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
        noised_at: who adds the noise.
        bounded_at: who enforces the clipping; None = nobody.
        switched_off_by: who could switch the defense off unnoticed.
        unit: the unit of privacy that epsilon refers to.
        noise_multiplier: standard deviation of the noise, in units of `clip`.
        clip: the L2 norm to which the noise is calibrated.
        moves: sensitivity in units of `clip`.
        delta: the delta of that epsilon.
        rounds: the rounds that are accounted for.
        recorded_rounds: number of rounds in an incomplete recording; None = all of them.
        steps: number of noise draws per round.
        relation: in what neighboring data sets differ; None = as `moves` says.
        record_sampling: how the records of a step are sampled; None = not stated.
        record_rate: the share of a client's records in a step; None = all, or not stated.
        client_sampling: how the clients of a round are sampled; None = not stated.
        sampling_rate: the share of clients in a round, if accounting may use it, else 1.
        claimed: the stated epsilon; None = none is stated, or an infinite one.
        claimed_for: what the stated epsilon covers, such as "run"; None = none is stated.
        claim: whether the stated epsilon is true for these settings, whatever attacks measure;
            None = unknown, as in findings of older versions.
        doubt: why epsilon was not recomputed, or not closely; "" = nothing is in doubt.
        is_recomputed: whether accountants recomputed epsilon from the settings.
        pld: upper bound by the distribution of the privacy loss; None = infinite, or not
            recomputed.
        rdp: upper bound by Renyi divergences; None = infinite, or not recomputed.
        drawn: upper bound that counts on the sampling of clients; None = it does not apply.
        lower: lower bound of the true epsilon, for a stated one; 0 = none is known; None =
            infinite, or not recomputed.
        ceiling: the smallest upper bound for the run and these observers; None = unknown if the
            verdict is "unaccounted" or "not confirmed", else infinite.
        measured: the largest lower bound that attacks prove; None = not measured.
        estimated: by canary clients, for a mechanism of clients; () = there were none.
        by_client: the accountants of single clients; None = there are none.

    """

    arm: str
    defense: str
    observers: tuple[str, ...]
    verdict: Annotated[EpsilonVerdict, BeforeValidator(_current_verdict)]
    flaw: str
    noised_at: Site
    bounded_at: Site | None
    switched_off_by: str
    unit: PrivacyUnit
    noise_multiplier: NonNegative
    clip: Size
    moves: Size
    delta: Annotated[float, Field(gt=0, lt=1)]
    rounds: Count
    steps: PositiveCount
    sampling_rate: Annotated[FiniteFloat, Field(ge=0, le=1)]
    claimed: Size
    claimed_for: EpsilonScope | None
    is_recomputed: bool
    pld: Size
    rdp: Size
    drawn: Size
    ceiling: Size
    measured: EpsilonBoundRow | None
    recorded_rounds: Count | None = None
    relation: PrivacyRelation | None = None
    record_sampling: RecordSampling | None = None
    record_rate: Probability = None
    client_sampling: ClientSampling | None = None
    claim: ClaimStatus | None = None
    doubt: str = ""
    lower: Size = None
    estimated: tuple[ClientEstimateRow, ...] = ()
    by_client: ClientEpsilonsRow | None = None

    @property
    def mechanism(self) -> str:
        """The class name at the start of the settings, such as "LocalDp"."""
        return self.defense.partition("(")[0]

    @property
    def guaranteed_epsilon(self) -> float | None:
        """The epsilon that holds as far as is known; None if unknown.

        Infinite also if the claim is refuted by attacks or by its own settings, as a wrong
        number guarantees nothing. Unknown if attacks contradict it without proof, or by an
        estimate.
        """
        is_infinite = self.is_recomputed and self.pld is None
        is_unknown = self.verdict == "not confirmed" and self.ceiling is None
        if (is_unknown and not is_infinite) or self.verdict in UNPROVEN:
            return None
        if self.ceiling is None or self.verdict in {"violated", "false"}:
            return inf
        return self.ceiling

    @property
    def rounds_text(self) -> str:
        """The number of rounds, such as "3 of 300 rounds recorded"; "" = all are recorded."""
        if self.recorded_rounds is None:
            return ""
        return f"{self.recorded_rounds:,} of {self.rounds:,} rounds recorded"

    @property
    def reason(self) -> str:
        """What is wrong with the mechanism, or why epsilon or the claim is in doubt; or ""."""
        older = {"not confirmed": OLDER_VERDICT, "unaccounted": INSTALL_HINT}
        if self.verdict not in older:
            return self.flaw
        return older[self.verdict] if self.claim is None else self.doubt

    @model_validator(mode="after")
    def _check_verdict(self) -> "EpsilonRow":
        at_least = None if self.measured is None else self.measured.at_least
        match self.verdict:
            case "flawed" | "outside guarantee" | "unaccounted":
                is_consistent = self.ceiling is None
            case "not tested" | "refused" | "not exchangeable" | "unchecked":
                is_consistent = at_least is None
            case "violated" | "contradicted" | "estimate":
                claimed = self.claimed if self.claimed_for == "run" else None
                known = [one for one in (self.ceiling, claimed) if one is not None]
                is_consistent = at_least is not None and at_least > min(known, default=inf)
            case "holds":
                # The bound may exceed the ceiling: see `_is_disproved` in
                # `epsilon.epsilon_results`.
                is_consistent = at_least is not None
            case "false" | "not confirmed":
                is_consistent = self.claim in (None, self.verdict)
        if not is_consistent:
            raise ValueError(f"verdict {self.verdict!r} contradicts `ceiling` and `measured`")
        self._check_statements()
        return self

    def _check_statements(self) -> None:
        """Raise `ValueError` if what is stated contradicts itself, whatever the verdict."""
        refuse_repeated("observers", self.observers)
        if self.claimed is not None and self.claimed_for is None:
            raise ValueError(
                "`claimed` states an epsilon, but `claimed_for` does not say of what"
            )
        if self.verdict == "false" and self.claimed is None:
            raise ValueError("verdict 'false' contradicts `claimed`, which states none")
        if self.recorded_rounds is not None and self.recorded_rounds > self.rounds:
            raise ValueError(
                f"`recorded_rounds` is {self.recorded_rounds}, above `rounds`, {self.rounds}"
            )
        computed = (self.pld, self.rdp, self.drawn, self.lower)
        if not self.is_recomputed and any(one is not None for one in computed):
            raise ValueError("`is_recomputed` is false, but a recomputed epsilon is stated")


CriticismSeverity = Literal["critical", "theoretical", "negligible"]
"""How much a fault takes away from a claim; see `doctor.criticism.SEVERITIES`."""


@final
@dataclass(frozen=True, slots=True)
class RunCriticism:
    """A fault that a rule of the doctor found in a run; see `doctor.criticism`.

    Args:
        id: identifier of the rule, such as "noise-repeats".
        severity: severity of the fault. Only a critical one is an alarm.
        title: the fault in a few words.
        what: what is wrong, with the numbers of this run.
        where: the place.
        evidence: what was seen there.
        mend: what to do about it.
        reference: where the fault is described.

    """

    id: str
    severity: CriticismSeverity
    title: str
    what: str
    where: str
    evidence: str
    mend: str
    reference: str


@final
class CriticismRow(DocumentPart):
    """A fault in the differential privacy of an arm; see `RunCriticism`."""

    arm: str
    id: str
    severity: CriticismSeverity
    title: str
    what: str
    where: str
    evidence: str
    mend: str
    reference: str
