"""The rules that a policy sets for an audit's findings."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, FiniteFloat, model_validator

from overheard.core.parties import parse_party
from overheard.core.settings import Positive
from overheard.findings.document_rows import NonNegative
from overheard.findings.threat_verdict import TargetKind
from overheard.gate.verdict import OverlapStatus
from overheard.plans.strict_model import StrictModel, check_unique, read_toml

RuleName = Annotated[str, Field(min_length=1, max_length=100)]

Names = Annotated[tuple[str, ...], Field(min_length=1)]


def _are_parties(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(parse_party(name) for name in names)


Observers = Annotated[tuple[str, ...], AfterValidator(_are_parties)]

Reason = Annotated[str, Field(min_length=1, max_length=500, pattern=r"\S")]
"""Why an exception is made; not only blanks."""


class VerdictRule(StrictModel):
    """A rule on the verdicts of the findings: that attacks leak nothing.

    It covers every matching verdict: one for each arm, observers, question and kind of target.
    A verdict "leaks" fails if its p-value is small enough among all verdicts that the policy's
    rules cover (Holm 1979). Then at most 2.5 % of policies fail where nothing leaks, however
    many verdicts they cover. "No leak above margin" and "nothing to read" pass.

    Args:
        name: the name of the rule.
        question: such as "membership", as in the findings; default: every question.
        arms: the arms to check, each of which must exist; default: every arm.
        observers: the complete group of observers to check; default: every group.
        about: the kind of targets, "clients" or "cohort"; default: both.
        straddles: the status of any other verdict, such as "inconclusive"; default: the
            policy's.

    """

    name: RuleName
    question: str | None = None
    arms: Names | None = None
    observers: Annotated[Observers, Field(min_length=1)] | None = None
    about: TargetKind | None = None
    straddles: OverlapStatus | None = None


class LeakRule(StrictModel):
    """A limit on the success of attacks, for every matching row of the findings.

    Set exactly one limit: `no_better_than`, `gain_at_most` or `grows_at_most`.

    Args:
        name: the name of the rule.
        question: such as "membership", as in the findings.
        score: such as "membership_auc", as in the findings.
        arms: the arms to check, each of which must exist; default: every arm.
        attacks: the attacks to check, by their names in the findings; each must exist in every
            arm. Default: every attack.
        observers: the complete group of observers to check; default: every group.
        about: the kind of targets, "clients" or "cohort"; default: both.
        rounds: "together" = only rows over the most rounds; "each" = every row, including those
            of single rounds.
        no_better_than: the best result that an attack may reach, in the score's unit. The
            findings determine the direction: an AUC must stay below it, an error above.
        gain_at_most: the largest gain over the best uninformed guess, in the score's unit.
        grows_at_most: how much larger the gain may be than in the earlier findings.
        targets_at_least: a row with fewer targets is inconclusive.
        seeds_at_least: a row with fewer runs is inconclusive: an interval from one run does not
            cover other runs.
        may_be_refused: attacks that may be refused; a refusal of any other attack is
            inconclusive.
        must_be_measured: attacks that must exist in every arm, beside any others; without them
            the rule is inconclusive.
        straddles: the status if an interval contains the limit; default: the policy's.

    """

    name: RuleName
    question: str
    score: str
    arms: Names | None = None
    attacks: Names | None = None
    observers: Annotated[Observers, Field(min_length=1)] | None = None
    about: TargetKind | None = None
    rounds: Literal["together", "each"] = "together"
    no_better_than: FiniteFloat | None = None
    gain_at_most: NonNegative | None = None
    grows_at_most: NonNegative | None = None
    targets_at_least: Positive = 1
    seeds_at_least: Positive = 1
    may_be_refused: tuple[str, ...] = ()
    must_be_measured: tuple[str, ...] = ()
    straddles: OverlapStatus | None = None

    @model_validator(mode="after")
    def _has_one_limit(self) -> "LeakRule":
        _refuse_all_but_one(
            {
                "no_better_than": self.no_better_than,
                "gain_at_most": self.gain_at_most,
                "grows_at_most": self.grows_at_most,
            }
        )
        return self


class EpsilonRule(StrictModel):
    """A limit on claimed or proven epsilon, for every matching mechanism and observers.

    Set exactly one of `guaranteed_at_most`, `proven_at_most` and `claims_hold`.

    Args:
        name: the name of the rule.
        arms: the arms to check, each of which must exist and have a mechanism; default: every
            arm with a mechanism, at least one of which must exist.
        observers: the complete group of observers to check; [] = readers of the global models
            only, whose attacks are never measured. Default: the server and all observers.
        mechanisms: the mechanisms to check, by the name at the start of their settings in the
            findings, such as "LocalDp". Each must exist, in each of the named arms. Default:
            every mechanism.
        guaranteed_at_most: limit on the epsilon that is stated or recomputed for the run. It is
            infinite if nothing is guaranteed to these observers, or if the claim is refuted.
        proven_at_most: limit on the epsilon that membership attacks prove. A small proven
            epsilon is no proof of privacy.
        claims_hold: no attack refutes a claim, no claim is smaller than the epsilon of its
            settings, and the doctor found no critical fault in the arm. The size of the claims
            is not limited.

    """

    name: RuleName
    arms: Names | None = None
    observers: Observers | None = None
    mechanisms: Names | None = None
    guaranteed_at_most: NonNegative | None = None
    proven_at_most: NonNegative | None = None
    claims_hold: bool = False

    @model_validator(mode="after")
    def _has_one_limit(self) -> "EpsilonRule":
        _refuse_all_but_one(
            {
                "guaranteed_at_most": self.guaranteed_at_most,
                "proven_at_most": self.proven_at_most,
                "claims_hold": self.claims_hold or None,
            }
        )
        return self


class CostRule(StrictModel):
    """A limit on the cost of every matching arm, by the range over its runs.

    Set exactly one limit. An arm passes if all of its runs keep it, and fails if none does.

    Args:
        name: the name of the rule.
        arms: the arms to check, each of which must exist; default: every arm.
        accuracy_at_least: accuracy of the last global model that was tested, 0 to 1.
        bytes_at_most: bytes sent in a run, up and down.
        seconds_at_most: wall-clock seconds for the training of a run.
        seeds_at_least: with fewer runs an arm is inconclusive: one run shows no variation.
        straddles: the status if some runs keep the limit and some do not; default: the
            policy's.

    """

    name: RuleName
    arms: Names | None = None
    accuracy_at_least: Annotated[float, Field(ge=0, le=1)] | None = None
    bytes_at_most: NonNegative | None = None
    seconds_at_most: NonNegative | None = None
    seeds_at_least: Positive = 2
    straddles: OverlapStatus | None = None

    @model_validator(mode="after")
    def _has_one_limit(self) -> "CostRule":
        _refuse_all_but_one(
            {
                "accuracy_at_least": self.accuracy_at_least,
                "bytes_at_most": self.bytes_at_most,
                "seconds_at_most": self.seconds_at_most,
            }
        )
        return self


class SumRule(StrictModel):
    """A limit on what the sums of secure aggregation reveal, by who took part in which round.

    Set exactly one limit. No attack is needed. An arm passes if each of its runs keeps the
    limit for certain, and fails if one breaks it for certain.

    Args:
        name: the name of the rule.
        arms: the arms to check, each of which must have sums; default: every arm with sums, at
            least one of which must exist.
        resolution_at_most: limit on the share of a client's variance that the sums reveal, 0
            to 1, of the client that they reveal most of.
        smallest_group_at_least: fewest clients of which a weighted sum may follow from the
            sums. It passes on the proven lower bound only, and fails on a group that was
            found.

    """

    name: RuleName
    arms: Names | None = None
    resolution_at_most: Annotated[float, Field(ge=0, le=1)] | None = None
    smallest_group_at_least: Positive | None = None

    @model_validator(mode="after")
    def _has_one_limit(self) -> "SumRule":
        _refuse_all_but_one(
            {
                "resolution_at_most": self.resolution_at_most,
                "smallest_group_at_least": self.smallest_group_at_least,
            }
        )
        return self


RECORDING_RULE: Literal["recording_incomplete"] = "recording_incomplete"
"""The name of the rule on recordings, which every policy has unless it turns it off."""


class RecordingRule(StrictModel):
    """A rule that a recorded run holds every message that arrived.

    A message that arrived and was not recorded was never attacked, so a client could hide from
    the audit by replies that cannot be recorded. Replies that never arrived break no rule.

    Args:
        name: the name of the rule.

    """

    name: Literal["recording_incomplete"] = RECORDING_RULE


PolicyRule = VerdictRule | LeakRule | EpsilonRule | CostRule | SumRule | RecordingRule
"""A rule of any of the six kinds."""


class PolicyException(StrictModel):
    """Verdicts of a rule that are accepted until a date although they do not pass.

    It covers every verdict of the rule, unless `arms`, `observers` or `attacks` restrict it.
    After its last day it fails by itself, until it is renewed or removed.

    Args:
        rule: the name of the rule.
        arms: the arms that are accepted; default: every arm.
        observers: the complete group of observers that is accepted; default: every group.
        attacks: the attacks that are accepted, by their names in the findings; default: every
            attack.
        reason: why the verdicts are accepted.
        expires: the last day of the exception, such as 2027-01-31.

    """

    rule: RuleName
    arms: Names | None = None
    observers: Observers | None = None
    attacks: Names | None = None
    reason: Reason
    expires: date


class Policy(StrictModel):
    """All rules of a policy, each of which must pass.

    Args:
        straddles: the status if an interval contains the limit: "inconclusive", "fail" or
            "pass".
        verdicts: rules on the verdicts of the findings.
        leaks: limits on the success of attacks.
        epsilons: limits on claimed and proven epsilon.
        costs: limits on the cost of arms.
        sums: limits on what the sums of secure aggregation reveal of single clients.
        recording_incomplete: whether a recorded run fails if a message that arrived is not
            recorded. Exceptions name this rule "recording_incomplete".
        exceptions: verdicts that are accepted until a date although they do not pass.

    """

    straddles: OverlapStatus = "inconclusive"
    verdicts: tuple[VerdictRule, ...] = ()
    leaks: tuple[LeakRule, ...] = ()
    epsilons: tuple[EpsilonRule, ...] = ()
    costs: tuple[CostRule, ...] = ()
    sums: tuple[SumRule, ...] = ()
    recording_incomplete: bool = True
    exceptions: tuple[PolicyException, ...] = ()

    @property
    def rules(self) -> tuple[PolicyRule, ...]:
        """All rules, in the order in which they are judged."""
        recordings = (RecordingRule(),) if self.recording_incomplete else ()
        return (*self._stated_rules, *recordings)

    @property
    def _stated_rules(self) -> tuple[PolicyRule, ...]:
        return (*self.verdicts, *self.leaks, *self.epsilons, *self.costs, *self.sums)

    @property
    def needs_earlier_findings(self) -> bool:
        """Whether a rule needs earlier findings."""
        return any(rule.grows_at_most is not None for rule in self.leaks)

    @model_validator(mode="after")
    def _has_rules_of_different_names(self) -> "Policy":
        names = [rule.name for rule in self.rules]
        if not self._stated_rules:
            raise ValueError(
                "the policy has no rules: add [[verdicts]], [[leaks]], [[epsilons]], "
                "[[costs]] or [[sums]]"
            )
        check_unique(names)
        for number, one in enumerate(self.exceptions, 1):
            if one.rule not in names:
                raise ValueError(
                    f"exception {number} is for a rule that does not exist: {one.rule!r}; "
                    f"rules: {', '.join(names)}"
                )
        return self


def read_policy(path: Path) -> Policy:
    """Read the policy in a TOML file.

    Raises:
        PlanError: if the file cannot be read or is not a policy; it lists every mistake with
            its place.

    """
    return read_toml(Policy, path, "policy", has_dates=True)


def _refuse_all_but_one(limits: Mapping[str, float | None]) -> None:
    given = sum(limit is not None for limit in limits.values())
    if given != 1:
        raise ValueError(f"set exactly one of {', '.join(limits)}; {given} are set")
