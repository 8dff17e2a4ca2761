"""What a pipeline asks of an audit's findings."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, FiniteFloat, model_validator

from overheard.core.parties import party
from overheard.data.positive import Positive
from overheard.findings.document_rows import NotNegative
from overheard.findings.exposures import About
from overheard.gate.verdict import Straddling
from overheard.plans.table import StrictTable, read_table, refuse_repeats

RuleName = Annotated[str, Field(min_length=1, max_length=100)]

Names = Annotated[tuple[str, ...], Field(min_length=1)]


def _are_parties(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(party(name) for name in names)


Observers = Annotated[tuple[str, ...], AfterValidator(_are_parties)]


class LeakRule(StrictTable):
    """How much attacks may read, at most: every row of the findings that it asks for.

    Exactly one limit is given: `no_better_than`, `gain_at_most` or `grows_at_most`.

    Args:
        name: what it is called.
        question: such as "membership", as in the findings.
        score: such as "membership_auc", as in the findings.
        arms: asked for, each of which must be there; left out = every arm.
        attacks: asked for by their names in the findings, each of which must be there in every
            arm; left out = every attack.
        observers: those who pool what they read, all of them; left out = whoever listened.
        about: "clients" or "cohort"; left out = both.
        rounds: "together" = as many as were heard together; "each" = every row, those of single
            rounds too.
        no_better_than: how well an attack may do, in the score's own unit. Which way is better
            the findings know: an AUC must stay below, an error above.
        gain_at_most: how much better than the best blind guess, in the score's own unit.
        grows_at_most: how much larger the gain may be than in the earlier findings.
        targets_at_least: with fewer a row is inconclusive.
        seeds_at_least: with fewer runs a row is inconclusive: an interval from one run says
            nothing of others.
        may_be_refused: attacks that need not be able to run; of any other a refusal is
            inconclusive.
        straddles: what an interval with the limit inside counts as; left out = the policy's.

    """

    name: RuleName
    question: str
    score: str
    arms: Names | None = None
    attacks: Names | None = None
    observers: Annotated[Observers, Field(min_length=1)] | None = None
    about: About | None = None
    rounds: Literal["together", "each"] = "together"
    no_better_than: FiniteFloat | None = None
    gain_at_most: NotNegative | None = None
    grows_at_most: NotNegative | None = None
    targets_at_least: Positive = 1
    seeds_at_least: Positive = 1
    may_be_refused: tuple[str, ...] = ()
    straddles: Straddling | None = None

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


class EpsilonRule(StrictTable):
    """What is claimed of epsilon, or proven: every mechanism and observers that it asks for.

    Exactly one is given: `guaranteed_at_most`, `proven_at_most` or `claims_hold`.

    Args:
        name: what it is called.
        arms: asked for, each of which must be there and have a mechanism; left out = every arm
            that has one, at least one of which must be there.
        observers: those who pool what they read, all of them; [] = whoever reads the global
            models alone, of whom no attack is ever measured; left out = the server and whoever
            listened.
        mechanisms: by the name at the start of their settings in the findings, such as
            "LocalDp", each of which must be there, in each of the arms that are named; left out
            = every mechanism.
        guaranteed_at_most: the epsilon that is stated or recomputed for the run; infinite where
            nothing is guaranteed to these observers, or what is stated is refuted.
        proven_at_most: the epsilon that attacks on membership prove. That they prove little is
            no proof of privacy.
        claims_hold: attacks refute no claim, and settings come to no more than is stated; of
            how much is claimed it says nothing.

    """

    name: RuleName
    arms: Names | None = None
    observers: Observers | None = None
    mechanisms: Names | None = None
    guaranteed_at_most: NotNegative | None = None
    proven_at_most: NotNegative | None = None
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


class CostRule(StrictTable):
    """What an arm may cost: every arm that it asks for, by the range over its runs.

    Exactly one limit is given. An arm keeps it if all of its runs do, breaks it if none does.

    Args:
        name: what it is called.
        arms: asked for, each of which must be there; left out = every arm.
        accuracy_at_least: of the last global model that was tested, 0 to 1.
        bytes_at_most: that travel in a run, up and down.
        seconds_at_most: of the clock, for the training of a run.
        seeds_at_least: with fewer runs it is inconclusive: one alone tells of no spread.
        straddles: what it counts as that some runs keep the limit and some break it; left out =
            the policy's.

    """

    name: RuleName
    arms: Names | None = None
    accuracy_at_least: Annotated[float, Field(ge=0, le=1)] | None = None
    bytes_at_most: NotNegative | None = None
    seconds_at_most: NotNegative | None = None
    seeds_at_least: Positive = 2
    straddles: Straddling | None = None

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


class Policy(StrictTable):
    """All rules, each of which must pass.

    Args:
        straddles: what an interval with the limit inside counts as: "inconclusive", "fail" or
            "pass".
        leaks: how much attacks may read.
        epsilons: what may be claimed of epsilon, and proven.
        costs: what arms may cost.

    """

    straddles: Straddling = "inconclusive"
    leaks: tuple[LeakRule, ...] = ()
    epsilons: tuple[EpsilonRule, ...] = ()
    costs: tuple[CostRule, ...] = ()

    @property
    def looks_back(self) -> bool:
        """Whether a rule asks for earlier findings."""
        return any(rule.grows_at_most is not None for rule in self.leaks)

    @model_validator(mode="after")
    def _has_rules_of_different_names(self) -> "Policy":
        rules: tuple[LeakRule | EpsilonRule | CostRule, ...]
        rules = (*self.leaks, *self.epsilons, *self.costs)
        names = [rule.name for rule in rules]
        if not names:
            raise ValueError(
                "without a rule everything passes: give [[leaks]], [[epsilons]] or [[costs]]"
            )
        refuse_repeats(names)
        return self


def read_policy(path: Path) -> Policy:
    """The policy in a TOML file.

    Raises:
        PlanError: if the file cannot be read or is no policy; every mistake is told at once,
            each with its place.

    """
    return read_table(Policy, path, "policy")


def _refuse_all_but_one(limits: Mapping[str, float | None]) -> None:
    given = sum(limit is not None for limit in limits.values())
    if given != 1:
        raise ValueError(f"give one of {', '.join(limits)}; {given} are given")
