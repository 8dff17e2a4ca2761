"""Runs the attacks of a threat on a run: claims, or refusals with their reasons."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar, final

import torch

from overheard.archive.tensor_cache import CodeTensorCache
from overheard.auditing.cells.cell_claims import CellClaims, TargetClaim
from overheard.auditing.cells.claim_batches import ClaimRequest, make_claims_in_batches
from overheard.auditing.cells.claim_store import ClaimStore
from overheard.auditing.cells.contributors import Contributors, find_contributors
from overheard.auditing.knowledge import attacker_knowledge
from overheard.auditing.observed_run import ObservedRun
from overheard.auditing.program import AttackSpec
from overheard.auditing.progress import Progress
from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.algorithm.deduced_view import deduce_means, find_cohorts
from overheard.core.attack import Attack, missing_needs
from overheard.core.compute_settings import LeftToMainProcess
from overheard.core.custom_code.attack_claims import (
    AttackClaims,
    describe_claim_failure,
    make_claims,
)
from overheard.core.defense import Defense
from overheard.core.errors import ClaimError, NeedsError
from overheard.core.failures import describe_internal_error
from overheard.core.knowledge import Knowledge
from overheard.core.messages import DistilledSet, Message, MissingReply, UnstoredMessage, Update
from overheard.core.needs import CLASSES, MODEL, SUMS
from overheard.core.parties import COHORT, SERVER, Party, is_shadow_device, party_sort_key
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.truth import ByRound, Renaming
from overheard.core.view import View
from overheard.findings.finding import Cell
from overheard.plans.plan import ThreatPlan
from overheard.plans.registries import question_of_attack

CLIENT_MESSAGES = (Update, DistilledSet)
"""Messages of clients. An update derived from a distilled set moves with that set."""

V = TypeVar("V")

_NO_UPDATES = (MissingReply, UnstoredMessage)


@final
@dataclass(frozen=True, slots=True)
class Pseudonyms(Renaming):
    """The pseudonym of each client in each round.

    Args:
        names: by round and client, its pseudonym.

    """

    names: Mapping[tuple[int, Party], Party]

    keeps_names = False

    def clients(self) -> Mapping[Party, Party]:
        """Return the client behind each pseudonym."""
        return {name: party for (_, party), name in self.names.items()}

    def rename_senders(self, transcript: Transcript) -> Transcript:
        """Return the messages of a run, those of clients from pseudonyms and in their order.

        Updates within a round are ordered by the numbers of pseudonyms, so that their order
        reveals nothing. Missing updates are left out, since the server must not learn which
        clients were sampled. Shadow devices belong to the server and keep their names.
        """
        by_round = defaultdict[int, list[Message]](list)
        for message in transcript.messages:
            by_round[message.round].append(message)
        messages = list[Message]()
        for number, in_round in by_round.items():
            sent = defaultdict[Party, list[Message]](list)
            for message in in_round:
                name = self.names.get((number, message.sender))
                if name is not None and isinstance(message.body, CLIENT_MESSAGES):
                    sent[name].append(message)
                elif name is None and not isinstance(message.body, _NO_UPDATES):
                    messages.append(message)
            for name in sorted(sent, key=_number_in_round):
                messages += [replace(message, sender=name) for message in sent[name]]
        return Transcript(tuple(messages))

    def rename_parties(self, held: Mapping[Party, V]) -> Mapping[Party, V]:
        """Return what is held by client, by pseudonym."""
        return {name: held[party] for (_, party), name in self.names.items() if party in held}

    def rename_by_round(self, held: ByRound[V]) -> ByRound[V]:
        """Return what is held by (round, client), by round and pseudonym."""
        return {
            (number, self.names[number, party]): one
            for (number, party), one in held.items()
            if (number, party) in self.names
        }


def pseudonyms_of(run: ObservedRun, threat: ThreatPlan) -> Pseudonyms | None:
    """Return the names that senders have in a threat; None = they keep their own."""
    if threat.pseudonyms == "run":
        return None
    return draw_pseudonyms(run.transcript, Seed(run.spec.seed).child("pseudonyms"))


def draw_pseudonyms(transcript: Transcript, seed: Seed) -> Pseudonyms:
    """Draw a name `anon/ROUND-NUMBER` for each client that sends an update in a round.

    The numbers are random (Bittau et al. 2017, Prochlo: the shuffler).
    """
    senders = defaultdict[int, dict[Party, None]](dict)
    for message in transcript.messages:
        if isinstance(message.body, CLIENT_MESSAGES) and not _is_exempt(message.sender):
            senders[message.round][message.sender] = None
    names = dict[tuple[int, Party], Party]()
    for number, parties in senders.items():
        order = torch.randperm(len(parties), generator=seed.child("round", number).generator())
        in_order = list(parties)
        for rank, index in enumerate(order.tolist()):
            names[number, in_order[index]] = Party(f"anon/{number}-{rank}")
    return Pseudonyms(names)


def _number_in_round(name: Party) -> int:
    return int(name.rpartition("-")[2])


def _is_exempt(party: Party) -> bool:
    return party == SERVER or is_shadow_device(party)


NO_OTHER_UPDATE = "an update from a client that is not an observer"
"""What is missing if only the observers' own updates are visible."""

LAST_LAYER_IS_LOCAL = "the last layer of the model, which stays with each client"
"""What is missing in place of the architecture if nobody sends the last layer."""


def run_attacks(
    run: ObservedRun, attacks: Sequence[AttackSpec], store: ClaimStore, progress: Progress
) -> Iterator[CellClaims]:
    """Run the attacks of one threat on one run; yield the claims of each cell.

    A worker process leaves out attacks that need a GPU.

    Args:
        run: the run.
        attacks: the attacks of the threat on it.
        store: where claims are kept.
        progress: counts the cells.

    """
    threat, rounds = attacks[0].threat, run.spec.rounds
    transcript, observers = run.transcript, threat.observer_parties
    pseudonyms = pseudonyms_of(run, threat)
    if pseudonyms is not None:
        transcript = pseudonyms.rename_senders(transcript)
    algorithm = run.inputs.plan.algorithm_of(run.spec.arm)
    seen = _observe(transcript, threat, algorithm, run.spec.arm.defenses)
    view = seen.view
    targets = seen.targets
    contributors = find_contributors(transcript.messages, observers)
    observed = {
        target: contributors.rounds_of(target, view.rounds_with_updates(target))
        for target in targets
    }
    why = "" if run.recording is None else run.recording.refusal(observers)
    cells = ThreatCells(run, view, contributors, attacks, store, progress)
    for attack in attacks:
        if why:
            refusals = dict.fromkeys(targets, (why,))
            all_rounds = CellClaims(
                attack.cell, {}, refusals, kinds=dict.fromkeys(targets, "contradicted")
            )
        elif unjudged := run.unjudged(attack.attack, threat.about):
            all_rounds = CellClaims(attack.cell, {}, dict.fromkeys(targets, (unjudged,)))
        else:
            try:
                all_rounds = cells.claims(attack, rounds, targets)
            except LeftToMainProcess:
                continue
        yield all_rounds
        progress.advance(attack.describe(rounds))
        for number in attack.single_rounds:
            # Clients without an observed update in this round are skipped. Clients without one
            # in any round were refused above.
            present = [target for target in targets if number in observed[target]]
            if present and all_rounds.claims and len(rounds) > 1:
                with suppress(LeftToMainProcess):
                    yield cells.claims(attack, (number,), present)
            progress.advance(attack.describe((number,), is_single=True))


@final
@dataclass(frozen=True, slots=True)
class _Observed:
    """What the observers of a threat see of a run, and the parties that it asks about."""

    view: View
    targets: tuple[Party, ...]


def _observe(
    transcript: Transcript,
    threat: ThreatPlan,
    algorithm: Algorithm,
    defenses: Sequence[Defense],
) -> _Observed:
    """Return what the observers of a threat see of a run."""
    seen = transcript.seen_by(*threat.observer_parties)
    parties = transcript.parties()
    targets = select_targets(transcript.messages, parties, threat, defenses)
    return _Observed(with_means(seen, algorithm, threat, transcript.messages), targets)


def select_targets(
    messages: Sequence[Message],
    parties: Sequence[Party],
    threat: ThreatPlan,
    defenses: Sequence[Defense] = (),
) -> tuple[Party, ...]:
    """Return the parties that a threat asks about, in order.

    Args:
        messages: those of the run.
        parties: all parties of the run.
        threat: the threat.
        defenses: those of the arm. Canary clients that they make are not asked about.

    """
    if threat.about == "cohort":
        return (COHORT,)
    if threat.pseudonyms == "round":
        # Clients read broadcasts under their own names but send under pseudonyms.
        parties = tuple({message.sender for message in messages})
    clients = [
        party
        for party in parties
        if party not in (SERVER, COHORT)
        and not is_shadow_device(party)
        and not any(defense.is_canary(party) for defense in defenses)
    ]
    return tuple(sorted(set(clients) - set(threat.observer_parties), key=party_sort_key))


def with_means(
    view: View, algorithm: Algorithm, threat: ThreatPlan, messages: Sequence[Message]
) -> View:
    """Return a view with the mean updates that the observers of a threat can compute.

    Args:
        view: what the observers read.
        algorithm: the algorithm of the run.
        threat: the threat.
        messages: all of the run. Observers that know the cohorts are told who sent updates.

    """
    is_known = "recipe" in threat.knows
    if is_known and threat.pseudonyms == "run":
        view = algorithm.plain_updates(view)
    cohorts = find_cohorts(messages) if "cohorts" in threat.knows else None
    return deduce_means(view, algorithm, is_known=is_known, cohorts=cohorts)


@final
class ThreatCells:
    """The cells of a threat on a run. Attacks that treat targets separately run together.

    Args:
        run: the run.
        view: what the observers can read.
        contributors: the clients that took part in each round.
        attacks: the attacks of the threat on the run.
        store: where claims are kept.
        progress: told of the work within a cell.

    """

    def __init__(
        self,
        run: ObservedRun,
        view: View,
        contributors: Contributors,
        attacks: Sequence[AttackSpec],
        store: ClaimStore,
        progress: Progress,
    ) -> None:
        self._run = run
        self._view = view
        self._contributors = contributors
        self._attacks = attacks
        self._store = store
        self._progress = progress
        self._known: Knowledge | None = None
        self._made = dict[Cell, CellClaims]()

    def claims(
        self, attack: AttackSpec, rounds: tuple[int, ...], targets: Sequence[Party]
    ) -> CellClaims:
        """Return the claims of an attack on some rounds, from the store if they are there."""
        cell = attack.of_rounds(rounds)
        claims = self._made.pop(cell, None) or self._stored(attack, rounds)
        if claims is not None:
            return claims
        try:
            self._make(self._together_with(attack, rounds), rounds, targets)
        # Whatever fails costs this cell alone.
        except Exception as error:
            return _failed_cell(attack, cell, targets, error)
        return self._made.pop(cell)

    def _stored(self, attack: AttackSpec, rounds: tuple[int, ...]) -> CellClaims | None:
        cell = attack.of_rounds(rounds)
        return self._store.load(cell, attack.attack.claim_type, attack.code)

    def _together_with(
        self, attack: AttackSpec, rounds: tuple[int, ...]
    ) -> Sequence[AttackSpec]:
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
                and self._is_asked(one, rounds)
                and self._stored(one, rounds) is None
            ),
        )

    def _is_asked(self, attack: AttackSpec, rounds: tuple[int, ...]) -> bool:
        """Return whether an attack runs on these rounds, as far as is known.

        Single rounds follow only for attacks with claims on all rounds.
        """
        if rounds == self._run.spec.rounds:
            return True
        overall = self._made.get(attack.cell) or self._stored(attack, self._run.spec.rounds)
        has_claims = overall is None or bool(overall.claims)
        return has_claims and rounds[0] in attack.single_rounds

    def _make(
        self, attacks: Sequence[AttackSpec], rounds: tuple[int, ...], targets: Sequence[Party]
    ) -> None:
        """Let attacks make claims about the targets for which nothing is missing."""
        view, asked = self._view.during(rounds), list[_AttackRequest]()
        observed = {target: view.observed_rounds(target) for target in targets}
        for one in attacks:
            try:
                asked.append(self._ask(one, view, rounds, observed))
            except Exception:
                if one is attacks[0]:
                    raise
                # It fails when its own turn comes, and costs no other attack.
        requests = [one.request for one in asked]
        if attacks[0].attack.has_separate_targets():
            all_made = make_claims_in_batches(view, requests)
        else:
            (only,) = requests
            all_made = (
                make_claims(only.attack, view, only.targets, only.knowledge, only.seed),
            )
        for question, made in zip(asked, all_made, strict=True):
            cell = question.attack.of_rounds(rounds)
            try:
                self._made[cell] = self._kept(question, cell, made)
            except Exception as error:
                self._made[cell] = _failed_cell(question.attack, cell, targets, error)

    def _ask(
        self,
        attack: AttackSpec,
        view: View,
        rounds: tuple[int, ...],
        observed: Mapping[Party, Collection[int]],
    ) -> "_AttackRequest":
        """Return what an attack is asked, and what is missing for the other targets.

        Args:
            attack: the attack.
            view: what is observed in these rounds.
            rounds: the attacked rounds.
            observed: by target, the rounds in which it is observed.

        """
        knowledge = self._knowledge(attack, rounds)
        algorithm = self._run.inputs.plan.algorithm_of(self._run.spec.arm)
        keeps = keeps_known_layers(attack.threat, algorithm)
        missing = {
            target: missing_for_target(
                attack.attack,
                view,
                self._contributors,
                knowledge,
                target,
                seen,
                keeps_layers=keeps,
            )
            for target, seen in observed.items()
        }
        able = tuple(target for target in observed if not missing[target])
        return _AttackRequest(
            attack,
            ClaimRequest(attack.attack, able, knowledge, attack.seed),
            {target: why for target, why in missing.items() if why},
            observed,
        )

    def _knowledge(self, attack: AttackSpec, rounds: tuple[int, ...]) -> Knowledge:
        """Return the attacker's knowledge, set up to report the progress of an attack.

        Simulations are stored as those of the attack's code.
        """
        spec = self._run.spec
        if self._known is None:
            self._known = attacker_knowledge(spec.arm, attack.threat, self._run.inputs)
        what = attack.describe(rounds, is_single=rounds != spec.rounds)
        compute = replace(
            self._known.compute,
            cache=CodeTensorCache(self._known.compute.cache, attack.simulation_code),
            on_progress=partial(self._progress.report_subtask, what),
        )
        return replace(self._known, compute=compute)

    def _kept(self, asked: "_AttackRequest", cell: Cell, made: AttackClaims) -> CellClaims:
        """Return the claims of a cell, stored unless anything failed."""
        try:
            claims = _cell_claims(asked, cell, made)
            if not (made.has_failed or claims.kinds):
                self._store.save(claims)
        except ClaimError as error:
            inner = asked.attack.attack
            why = (describe_claim_failure(inner.name, inner.claim_type, error),)
            refusals = {**asked.missing, **dict.fromkeys(asked.request.targets, why)}
            refusals |= {target: (one,) for target, one in made.problems.items()}
            return CellClaims(cell, {}, refusals, asked.attack.code)
        return claims


@final
@dataclass(frozen=True, slots=True)
class _AttackRequest:
    """What an attack is asked in a cell.

    Args:
        attack: the attack.
        request: the targets on which it can run, and what it knows.
        missing: what is missing for each other target.
        observed: by target, the rounds in which it is observed.

    """

    attack: AttackSpec
    request: ClaimRequest
    missing: Mapping[Party, tuple[str, ...]]
    observed: Mapping[Party, Collection[int]]


def _cell_claims(asked: _AttackRequest, cell: Cell, made: AttackClaims) -> CellClaims:
    """Return the claims of a cell with the uninformed guesses, and why there are no others."""
    refusals, failures = dict(asked.missing), dict(made.failures)
    refusals |= {target: (why,) for target, why in made.problems.items()}
    claims, scorer = dict[Party, TargetClaim](), asked.attack.question.scorer
    joint_targets = tuple(asked.request.targets) if asked.attack.attack.is_joint else ()
    for target, claim in made.claims.items():
        targets = joint_targets or (target,)
        try:
            guesses = scorer.uninformed_guesses(claim, asked.request.knowledge)
            rounds = {number for one in targets for number in asked.observed[one]}
            claims[target] = TargetClaim(claim, guesses, tuple(sorted(rounds)), joint_targets)
        except NeedsError as error:
            refusals |= dict.fromkeys(targets, (str(error),))
        except ClaimError:
            raise
        except Exception as error:
            why = describe_internal_error(f"a guess of {scorer.name}", error)
            failures |= dict.fromkeys(targets, why)
    refusals |= {target: (why,) for target, why in failures.items()}
    return CellClaims(
        cell, claims, refusals, asked.attack.code, dict.fromkeys(failures, "failed")
    )


def _failed_cell(
    attack: AttackSpec, cell: Cell, targets: Sequence[Party], error: Exception
) -> CellClaims:
    """Return a cell in which Overheard failed before it had a claim about any target."""
    why = describe_internal_error(f"the attack {attack.attack.name}", error)
    refusals = dict.fromkeys(targets, (why,))
    return CellClaims(cell, {}, refusals, kinds=dict.fromkeys(targets, "failed"))


def missing_for_target(
    attack: Attack[Any],
    view: View,
    contributors: Contributors,
    knowledge: Knowledge,
    target: Party,
    observed_rounds: Collection[int],
    *,
    keeps_layers: bool = False,
) -> tuple[str, ...]:
    """Return what is missing for an attack on a target, in words; empty if it can run.

    Args:
        attack: the attack.
        view: what it observes.
        contributors: the clients that took part in each round.
        knowledge: what the attacker knows.
        target: the target.
        observed_rounds: the rounds in which it is observed.
        keeps_layers: whether clients keep layers of a model that the attacker knows.

    """
    if question_of_attack(attack).needs_classes and not knowledge.has_classes:
        return (CLASSES.description,)
    missing = missing_needs(attack, view, target, knowledge)
    if keeps_layers:
        # The attacker knows the model, but nobody has the last layer of a client's.
        missing = tuple(
            LAST_LAYER_IS_LOCAL if one == MODEL.description else one for one in missing
        )
    missing = _with_reasons(missing, view, target)
    if missing or contributors.rounds_of(target, observed_rounds):
        return missing
    return (NO_OTHER_UPDATE,)


def _with_reasons(missing: tuple[str, ...], view: View, target: Party) -> tuple[str, ...]:
    """Return what is missing, with why observers cannot compute sums from broadcasts."""
    if target != COHORT and SUMS.description not in missing:
        return missing
    is_mean_hidden = view.hidden_mean and not view.rounds_with_updates(COHORT)
    hidden_mean = (view.hidden_mean,) if is_mean_hidden else ()
    if target == COHORT:
        return (*missing, *hidden_mean)
    hidden_cohorts = (view.hidden_cohorts,) if view.hidden_cohorts else ()
    why = (*hidden_cohorts, *hidden_mean) or (SUMS.description,)
    return (*(one for one in missing if one != SUMS.description), *why)


def keeps_known_layers(threat: ThreatPlan, algorithm: Algorithm) -> bool:
    """Return whether clients keep layers of a model that the attacker of a threat knows."""
    keeps = type(algorithm).local_tensors is not Algorithm.local_tensors
    return keeps and "model" in threat.knows
