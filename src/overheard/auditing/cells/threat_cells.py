"""Runs the cells of a threat: claims become findings, or refusals with their reasons."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

from overheard.auditing.cells.claims_together import ClaimRequest, make_claims_together
from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.attack import Attack, missing_needs
from overheard.core.claims import Claim
from overheard.core.errors import ClaimError, NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.needs import CLASSES, MODEL
from overheard.core.own_code.attack_claims import (
    AttackClaims,
    describe_claim_failure,
    make_claims,
)
from overheard.core.parties import COHORT, Party
from overheard.core.scorer import Scorer
from overheard.core.seeds import Seed
from overheard.core.truth import GroundTruth
from overheard.core.view import View
from overheard.findings.finding import Cell, Finding, Refusal
from overheard.findings.question import Question
from overheard.findings.result_cache import CellResult, ResultStore
from overheard.plans.registries import question_of_attack

NO_OTHER_UPDATE = "an update from a client that is not an observer"
"""What is missing if only the observers' own updates are visible."""

LAST_LAYER_AT_HOME = "the last layer of the model, which stays with each client"
"""What is missing in addition to the architecture if nobody sends the last layer."""


@dataclass(frozen=True, slots=True)
class ObservedRun:
    """What the attacks of a threat on a run share."""

    view: View
    truth: GroundTruth | None
    redrawn_truth: Callable[[], GroundTruth]
    store: ResultStore
    rounds: tuple[int, ...]
    clients: Mapping[Party, Party]


@dataclass(frozen=True, slots=True, eq=False)
class PlannedAttack:
    """One attack of a threat, with its cell of all rounds and the digest of its code."""

    # Any: an attack answers a question of its own.
    attack: Attack[Any]
    question: Question[Any]
    cell: Cell
    code: str
    knowledge_at: Callable[[str], Knowledge]

    def of_rounds(self, rounds: tuple[int, ...]) -> Cell:
        """Return the cell of the attack on these rounds."""
        return replace(self.cell, rounds=rounds)

    def describe(self, rounds: tuple[int, ...], *, is_single: bool = False) -> str:
        """Return the attack and its run, for a line of progress."""
        run = f"seed {self.cell.seed}{_control_name(self.cell)}"
        round_name = f", round {rounds[0]}" if is_single else ""
        return f"{self.cell.arm}, {run}: {self.cell.attack}{round_name}"


@dataclass(frozen=True, slots=True)
class _CellClaims:
    """The claims of one cell, and what is missing for targets without one."""

    view: View
    knowledge: Knowledge
    made: AttackClaims
    missing: Mapping[Party, tuple[str, ...]]


@final
class ThreatCells:
    """Runs the cells of a threat; attacks that treat targets separately do so together."""

    def __init__(self, run: ObservedRun, attacks: Sequence[PlannedAttack]) -> None:
        self._run = run
        self._attacks = attacks
        self._waiting = dict[Cell, _CellClaims]()

    def run(
        self, attack: PlannedAttack, rounds: tuple[int, ...], targets: Sequence[Party]
    ) -> CellResult:
        """Return the result of an attack on some rounds, from the store if it is there."""
        cell, store = attack.of_rounds(rounds), self._run.store
        stored = store.load(cell, attack.code)
        if stored is not None:
            return stored
        if cell not in self._waiting:
            self._make_claims(self._partners(attack, rounds), rounds, targets)
        claims = self._waiting.pop(cell)
        result, has_failed = _score_claims(self._run, attack, cell, claims)
        if not has_failed:
            store.save(result)
        return result

    def _partners(
        self, attack: PlannedAttack, rounds: tuple[int, ...]
    ) -> Sequence[PlannedAttack]:
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
                and self._run.store.load(one.of_rounds(rounds), one.code) is None
            ),
        )

    def _is_expected(self, attack: PlannedAttack, rounds: tuple[int, ...]) -> bool:
        """Return whether a later attack is known to be run on these rounds, too.

        Single rounds follow only for attacks with findings on all rounds.
        """
        if rounds == self._run.rounds:
            return True
        if attack.question.needs_all_rounds:
            return False
        overall = attack.of_rounds(self._run.rounds)
        if overall in self._waiting:
            return bool(self._waiting[overall].made.claims)
        stored = self._run.store.load(overall, attack.code)
        return stored is not None and bool(stored.findings)

    def _make_claims(
        self,
        attacks: Sequence[PlannedAttack],
        rounds: tuple[int, ...],
        targets: Sequence[Party],
    ) -> None:
        """Let attacks make claims about the targets for which nothing is missing."""
        view, truth, requests = self._run.view.during(rounds), self._run.truth, []
        all_missing = []
        for one in attacks:
            is_single = rounds != self._run.rounds
            knowledge = one.knowledge_at(one.describe(rounds, is_single=is_single))
            missing = {
                target: why
                for target in targets
                if (why := missing_for_target(one.attack, view, truth, knowledge, target))
            }
            able = tuple(target for target in targets if target not in missing)
            seed = Seed(one.cell.seed).child("attack", one.cell.attack)
            requests.append(ClaimRequest(one.attack, able, knowledge, seed))
            all_missing.append(missing)
        if attacks[0].attack.has_separate_targets():
            all_made = make_claims_together(view, requests)
        else:
            (only,) = requests
            all_made = (
                make_claims(only.attack, view, only.targets, only.knowledge, only.seed),
            )
        for one, request, made, missing in zip(
            attacks, requests, all_made, all_missing, strict=True
        ):
            self._waiting[one.of_rounds(rounds)] = _CellClaims(
                view, request.knowledge, made, missing
            )


def _score_claims(
    run: ObservedRun, attack: PlannedAttack, cell: Cell, claims: _CellClaims
) -> tuple[CellResult, bool]:
    """Return the findings and refusals of a cell, and whether code of others failed."""
    missing, made = claims.missing, claims.made
    refusals = [Refusal(cell, target, why) for target, why in missing.items()]
    refusals += [Refusal(cell, target, (why,)) for target, why in made.problems.items()]
    findings, has_failed = list[Finding](), made.has_failed
    scorer, truth = attack.question.scorer, run.truth
    for target, claim in made.claims.items():
        try:
            finding = _make_finding(
                cell,
                target,
                claim,
                scorer,
                truth,
                claims.knowledge,
                tuple(claims.view.observed_rounds(target)),
                run.clients.get(target, ""),
            )
            if truth is not None and cell.rounds == run.rounds:
                redrawn = run.redrawn_truth()
                fits = attack.question.redrawn_fits(claim, redrawn, target, cell.rounds)
                finding = replace(finding, redrawn_fits=fits)
            findings.append(finding)
        except NeedsError as error:
            # The ground truth has no entry for what is claimed, such as the user behind a
            # client.
            refusals.append(Refusal(cell, target, (str(error),)))
        except ClaimError as error:
            has_failed = True
            refusals.append(
                Refusal(cell, target, (describe_claim_failure(attack.attack, error),))
            )
    return CellResult(cell, tuple(findings), tuple(refusals), attack.code), has_failed


def known_rounds(
    rounds: Sequence[int], truth: GroundTruth | None, target: Party
) -> frozenset[int]:
    """Return the rounds in which the target took part; none if only observers did."""
    if truth is None or not truth.has_label_counts:
        return frozenset(rounds)
    return truth.rounds_of(target).intersection(rounds)


def missing_for_target(
    attack: Attack[Any],
    view: View,
    truth: GroundTruth | None,
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
    if missing or known_rounds(view.observed_rounds(target), truth, target):
        return missing
    return (NO_OTHER_UPDATE,)


def _keeps_layers(algorithm: Algorithm | None) -> bool:
    return algorithm is not None and type(algorithm).home_tensors is not Algorithm.home_tensors


def _make_finding(
    cell: Cell,
    target: Party,
    claim: Claim,
    # Any: a scorer takes the claims of its own question.
    scorer: Scorer[Any],
    truth: GroundTruth | None,
    knowledge: Knowledge,
    sent_rounds: tuple[int, ...],
    client: str,
) -> Finding:
    interval = claim.interval()
    claimed = Finding(
        cell,
        target,
        claim.numbers(),
        (),
        (),
        None if interval is None else interval.low,
        None if interval is None else interval.high,
        claim.timeline(),
        sent_rounds=sent_rounds,
        client=client,
        candidates=claim.candidates(),
        none_of_them=claim.unknown_probability(),
        doubt=claim.doubt(),
        learning_curve=claim.learning_curve(),
    )
    if truth is None:
        guesses = scorer.uninformed_guesses(claim, knowledge)
        return replace(
            claimed,
            is_checked=False,
            blind={name: one.numbers() for name, one in guesses.items()},
        )
    true: Claim = scorer.true_claim(truth, target, cell.rounds, claim)
    return replace(
        claimed,
        true=true.numbers(),
        scores=scorer.score(claim, true, scorer.guesses(true, knowledge)),
        true_since=None if (timeline := true.timeline()) is None else timeline.since,
        true_user=truth.users.get(target),
    )


def _control_name(cell: Cell) -> str:
    """Name the control of a cell for a line of progress; nothing for a planned run."""
    if not cell.is_control:
        return ""
    number = f" {cell.control_number + 1}" if cell.control_number else ""
    return f", {cell.control} control{number}" if cell.control else ", control"
