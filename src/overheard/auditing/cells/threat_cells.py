"""Runs the cells of a threat: claims about its targets, or refusals with their reasons."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

from overheard.archive.tensor_cache import CodeTensorCache
from overheard.auditing.cells.cell_claims import CellClaims, TargetClaim
from overheard.auditing.cells.claim_store import ClaimStore
from overheard.auditing.cells.claims_together import ClaimRequest, make_claims_together
from overheard.auditing.cells.contributors import Contributors
from overheard.auditing.knowledge import attacker_knowledge
from overheard.auditing.observed_run import ObservedRun
from overheard.auditing.program import CellSpec
from overheard.auditing.progress import Progress
from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.attack import Attack, missing_needs
from overheard.core.errors import ClaimError, NeedsError
from overheard.core.failures import describe_own_failure
from overheard.core.knowledge import Knowledge
from overheard.core.needs import CLASSES, MODEL
from overheard.core.own_code.attack_claims import (
    AttackClaims,
    describe_claim_failure,
    make_claims,
)
from overheard.core.parties import COHORT, Party
from overheard.core.view import View
from overheard.findings.finding import Cell
from overheard.plans.registries import question_of_attack

NO_OTHER_UPDATE = "an update from a client that is not an observer"
"""What is missing if only the observers' own updates are visible."""

LAST_LAYER_AT_HOME = "the last layer of the model, which stays with each client"
"""What is missing in addition to the architecture if nobody sends the last layer."""


@final
@dataclass(frozen=True, slots=True)
class ThreatView:
    """What the attacks of a threat on a run share.

    Args:
        run: the run.
        view: what the observers can read.
        contributors: the clients that took part in each round.
        store: where claims are kept.

    """

    run: ObservedRun
    view: View
    contributors: Contributors
    store: ClaimStore

    @property
    def rounds(self) -> tuple[int, ...]:
        """The rounds with updates, in order."""
        return self.run.spec.rounds


@dataclass(frozen=True, slots=True)
class _MadeClaims:
    """What an attack returned in a cell, and what is missing for targets without a claim.

    Args:
        view: what the attack observed.
        targets: the targets that it was asked about.
        knowledge: what it knew.
        made: what it returned.
        missing: by target that it was not asked about, what was missing.

    """

    view: View
    targets: tuple[Party, ...]
    knowledge: Knowledge
    made: AttackClaims
    missing: Mapping[Party, tuple[str, ...]]


@final
class ThreatCells:
    """Runs the cells of a threat; attacks that treat targets separately do so together."""

    def __init__(
        self, observed: ThreatView, attacks: Sequence[CellSpec], progress: Progress
    ) -> None:
        self._observed = observed
        self._attacks = attacks
        self._progress = progress
        self._known: Knowledge | None = None
        self._waiting = dict[Cell, _MadeClaims]()

    def run(
        self, attack: CellSpec, rounds: tuple[int, ...], targets: Sequence[Party]
    ) -> CellClaims:
        """Return the claims of an attack on some rounds, from the store if they are there."""
        cell = attack.of_rounds(rounds)
        stored = self._load(attack, rounds)
        if stored is not None:
            return stored
        try:
            if cell not in self._waiting:
                self._make_claims(self._partners(attack, rounds), rounds, targets)
            return self._keep(attack, cell, self._waiting.pop(cell))
        # Whatever fails costs this cell alone.
        except Exception as error:
            self._waiting.pop(cell, None)
            what = f"the attack {attack.attack.name}"
            return _failed_cell(cell, targets, describe_own_failure(what, error))

    def _load(self, attack: CellSpec, rounds: tuple[int, ...]) -> CellClaims | None:
        cell = attack.of_rounds(rounds)
        return self._observed.store.load(cell, attack.attack.claim_type, attack.code)

    def _has_claims(self, attack: CellSpec, rounds: tuple[int, ...]) -> bool | None:
        return self._observed.store.has_claims(attack.of_rounds(rounds), attack.code)

    def _keep(self, attack: CellSpec, cell: Cell, made: _MadeClaims) -> CellClaims:
        """Return the claims of a cell, stored unless anything failed."""
        try:
            claims = _cell_claims(attack, cell, made)
            if not (made.made.has_failed or claims.kinds):
                self._observed.store.save(claims)
        except ClaimError as error:
            inner = attack.attack
            why = (describe_claim_failure(inner.name, inner.claim_type, error),)
            refusals = {**made.missing, **dict.fromkeys(made.targets, why)}
            refusals |= {target: (one,) for target, one in made.made.problems.items()}
            return CellClaims(cell, {}, refusals, attack.code)
        return claims

    def _partners(self, attack: CellSpec, rounds: tuple[int, ...]) -> Sequence[CellSpec]:
        """Return an attack, and those after it that make their claims together with it."""
        if not attack.attack.has_separate_targets():
            return (attack,)
        later = self._attacks[self._attacks.index(attack) + 1 :]
        return (
            attack,
            *(
                one
                for one in later
                if one.attack.has_separate_targets()
                and self._is_expected(one, rounds)
                and self._has_claims(one, rounds) is None
            ),
        )

    def _is_expected(self, attack: CellSpec, rounds: tuple[int, ...]) -> bool:
        """Return whether a later attack is known to be run on these rounds, too.

        Single rounds follow only for attacks with claims on all rounds.
        """
        if rounds == self._observed.rounds:
            return True
        if attack.question.needs_all_rounds:
            return False
        overall = attack.of_rounds(self._observed.rounds)
        if overall in self._waiting:
            return bool(self._waiting[overall].made.claims)
        return bool(self._has_claims(attack, self._observed.rounds))

    def _make_claims(
        self,
        attacks: Sequence[CellSpec],
        rounds: tuple[int, ...],
        targets: Sequence[Party],
    ) -> None:
        """Let attacks make claims about the targets for which nothing is missing."""
        view, requests = self._observed.view.during(rounds), []
        ready, all_missing, contributors = [], [], self._observed.contributors
        for one in attacks:
            try:
                knowledge = self._knowledge(one, rounds)
                missing = {
                    target: why
                    for target in targets
                    if (
                        why := missing_for_target(
                            one.attack, view, contributors, knowledge, target
                        )
                    )
                }
            except Exception:
                if one is attacks[0]:
                    raise
                continue  # It fails when its own turn comes, and costs no other attack.
            ready.append(one)
            able = tuple(target for target in targets if target not in missing)
            requests.append(ClaimRequest(one.attack, able, knowledge, one.seed))
            all_missing.append(missing)
        if attacks[0].attack.has_separate_targets():
            all_made = make_claims_together(view, requests)
        else:
            (only,) = requests
            all_made = (
                make_claims(only.attack, view, only.targets, only.knowledge, only.seed),
            )
        for one, request, made, missing in zip(
            ready, requests, all_made, all_missing, strict=True
        ):
            self._waiting[one.of_rounds(rounds)] = _MadeClaims(
                view, tuple(request.targets), request.knowledge, made, missing
            )

    def _knowledge(self, attack: CellSpec, rounds: tuple[int, ...]) -> Knowledge:
        """Return the attacker's knowledge, set up to report the progress of an attack.

        Simulations are stored as those of the attack's code.
        """
        run = self._observed.run
        if self._known is None:
            self._known = attacker_knowledge(run.spec.arm, attack.threat, run.inputs)
        compute = self._known.compute
        what = attack.describe(rounds, is_single=rounds != self._observed.rounds)
        settings = replace(
            compute,
            cache=CodeTensorCache(compute.cache, attack.simulation_code),
            on_progress=partial(self._progress.report_subtask, what),
        )
        return replace(self._known, compute=settings)


def _cell_claims(attack: CellSpec, cell: Cell, made: _MadeClaims) -> CellClaims:
    """Return the claims of a cell with the uninformed guesses, and why there are no others."""
    refusals, failures = dict(made.missing), dict(made.made.failures)
    refusals |= {target: (why,) for target, why in made.made.problems.items()}
    claims, scorer = dict[Party, TargetClaim](), attack.question.scorer
    for target, claim in made.made.claims.items():
        about = made.targets if attack.attack.is_joint else (target,)
        try:
            guesses = scorer.uninformed_guesses(claim, made.knowledge)
            rounds = {number for one in about for number in made.view.observed_rounds(one)}
            together = about if attack.attack.is_joint else ()
            claims[target] = TargetClaim(claim, guesses, tuple(sorted(rounds)), together)
        except NeedsError as error:
            refusals |= dict.fromkeys(about, (str(error),))
        except ClaimError:
            raise
        except Exception as error:
            why = describe_own_failure(f"a guess of {scorer.name}", error)
            failures |= dict.fromkeys(about, why)
    refusals |= {target: (why,) for target, why in failures.items()}
    return CellClaims(cell, claims, refusals, attack.code, dict.fromkeys(failures, "failed"))


def _failed_cell(cell: Cell, targets: Sequence[Party], why: str) -> CellClaims:
    """Return a cell in which Overheard failed before it had a claim about any target."""
    return CellClaims(
        cell, {}, dict.fromkeys(targets, (why,)), kinds=dict.fromkeys(targets, "failed")
    )


def missing_for_target(
    attack: Attack[Any],
    view: View,
    contributors: Contributors,
    knowledge: Knowledge,
    target: Party,
) -> tuple[str, ...]:
    """Return what is missing for an attack on a target, in words; empty if it can run."""
    if question_of_attack(attack).needs_classes and not knowledge.has_classes:
        return (CLASSES.description,)
    missing = missing_needs(attack, view, target, knowledge)
    if MODEL.description in missing and _keeps_layers(knowledge.algorithm):
        missing = (*missing, LAST_LAYER_AT_HOME)
    if target == COHORT and view.hidden_mean and not view.rounds_with_updates(COHORT):
        missing = (*missing, view.hidden_mean)
    if missing or contributors.rounds_of(target, view.observed_rounds(target)):
        return missing
    return (NO_OTHER_UPDATE,)


def _keeps_layers(algorithm: Algorithm | None) -> bool:
    return algorithm is not None and type(algorithm).home_tensors is not Algorithm.home_tensors
