"""Which attacks of a plan can run on a run, found out without running them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from overheard.auditing.attack_runner import (
    keeps_known_layers,
    missing_for_target,
    select_targets,
    with_means,
)
from overheard.auditing.cells.contributors import Contributors, find_contributors
from overheard.auditing.inputs import AuditInputs
from overheard.auditing.knowledge import attacker_knowledge
from overheard.auditing.observed_run import ObservedRun
from overheard.auditing.program import AttackSpec, AuditProgram, RunSpec, resolve_plan
from overheard.auditing.recording import CheckedRecording
from overheard.auditing.simulate import build_federation
from overheard.core.algorithm.algorithm import ServerState
from overheard.core.attack import Attack
from overheard.core.custom_code.attack_claims import make_claims
from overheard.core.knowledge import Knowledge
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Message,
    MessageBody,
    Update,
    Weights,
    apply_update,
)
from overheard.core.needs import CANDIDATES
from overheard.core.parties import COHORT, SERVER, Party, joining_round, late_joiner
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.truth import GroundTruth
from overheard.core.view import View
from overheard.federation.federation import Federation
from overheard.federation.local_tensors import local_names
from overheard.findings.names import name_observers
from overheard.learning.initialization import initial_weights
from overheard.plans.plan import Plan, ThreatPlan
from overheard.plans.registries import question_of_attack

SKETCHED_ROUNDS = 4
"""Rounds of a sketch: attacks on changes between rounds need several."""

STEP = 1e-3
"""Typical size of a made-up change of a weight."""

TO_SERVER = frozenset({SERVER})


@final
@dataclass(frozen=True, slots=True)
class AttackOutlook:
    """Whether an attack of a threat can run in an arm.

    Args:
        arm: the arm; "recorded" for a recording.
        threat: number of the threat in the plan, from 0.
        observers: who observes.
        attack: the label of the attack.
        part: the name of the attack in the plan.
        question: the question that it answers.
        able_count: number of targets on which it can run.
        missing: pairs of what an attack lacks, in words, and the number of targets on which it
            lacks it.

    """

    arm: str
    threat: int
    observers: str
    attack: str
    part: str
    question: str
    able_count: int
    missing: tuple[tuple[str, int], ...]


@final
@dataclass(frozen=True, slots=True, eq=False)
class PlannedView:
    """What the observers of a threat will see of a run, and what they know.

    Args:
        seen: the run as attacks will see it; if it is simulated, its messages are a sketch.
        attacks: the attacks of the threat on it.
        view: the view.
        targets: the targets.
        knowledge: the attacker's knowledge.
        contributors: the clients that take part in each round.
        truth: what the claims about a recording are compared with; None = nothing.

    """

    seen: ObservedRun
    attacks: tuple[AttackSpec, ...]
    view: View
    targets: tuple[Party, ...]
    knowledge: Knowledge
    contributors: Contributors
    truth: GroundTruth | None = None

    @property
    def threat(self) -> ThreatPlan:
        """The threat."""
        return self.attacks[0].threat

    # Any: an attack answers a question of its own.
    def missing(self, attack: Attack[Any], target: Party) -> tuple[str, ...]:
        """Return what is missing for a target, in words; empty if it can run.

        Quick attacks on all rounds of a recording are tried, since only they know how many
        rounds they need.
        """
        recording = self.seen.recording
        refusal = recording and recording.refusal(self.threat.observer_parties)
        if refusal:
            return (f"a recording that is what it says it is: {refusal}",)
        if unjudged := self.seen.unjudged(attack, self.threat.about):
            return (unjudged,)
        rounds = self.view.observed_rounds(target)
        algorithm = self.seen.inputs.plan.algorithm_of(self.seen.spec.arm)
        missing = missing_for_target(
            attack,
            self.view,
            self.contributors,
            self.knowledge,
            target,
            rounds,
            keeps_layers=keeps_known_layers(self.threat, algorithm),
        )
        is_quick = attack.training_source() == "none"
        question = question_of_attack(attack)
        if missing or not (recording and is_quick and question.needs_all_rounds):
            return missing
        made = make_claims(attack, self.view, (target,), self.knowledge, Seed(0))
        return tuple(
            reason.removeprefix(f"{attack.name} on {target} needs ")
            for reason in made.problems.values()
        )

    # Any: an attack answers a question of its own.
    def able_targets(self, attack: Attack[Any]) -> tuple[Party, ...]:
        """Return the targets on which an attack can run."""
        return tuple(target for target in self.targets if not self.missing(attack, target))

    def outlooks(self) -> Iterator[AttackOutlook]:
        """Return the outlook of each attack of the threat."""
        for one in self.attacks:
            missing = {target: self.missing(one.attack, target) for target in self.targets}
            missing |= self._refusals(one, [party for party, why in missing.items() if not why])
            reasons = Counter(reason for why in missing.values() for reason in why)
            able_count = sum(not why for why in missing.values())
            yield AttackOutlook(
                self.seen.spec.name,
                one.number,
                name_observers(one.cell.observers),
                one.cell.label,
                one.attack.name,
                one.question.name,
                able_count,
                tuple(reasons.items()),
            )

    def _refusals(
        self, one: AttackSpec, targets: Sequence[Party]
    ) -> Mapping[Party, tuple[str, ...]]:
        """Return why an audit of a recording would refuse an attack on all of these targets.

        Empty = on one of them it would not. Only an attack knows what it reads of a network,
        such as a layer that may be frozen, so quick ones are tried. Those on candidate records
        are not, as gradients of all records take long.
        """
        if self.seen.recording is None:
            return {}
        facts, reads = None if self.truth is None else self.truth.facts, one.question.reads
        if facts is not None and reads and all(facts.get(kind) is None for kind in reads):
            why = f"a ground truth to compare its claims with: {reads[0].how_to_get}"
            return dict.fromkeys(targets, (why,))
        is_tried = one.attack.training_source() == "none" and CANDIDATES not in one.attack.needs
        if one.question.needs_all_rounds or not is_tried:
            return {}
        found = dict[Party, tuple[str, ...]]()
        for target in targets:
            refusal = self._refusal(one.attack, target)
            if not refusal:
                return {}
            found[target] = (f"a run that it can read: {refusal}",)
        return found

    # Any: an attack answers a question of its own.
    def _refusal(self, attack: Attack[Any], target: Party) -> str:
        """Return why an attack refuses the first round and all rounds; "" = it does not."""
        first = self.view.during(self.view.observed_rounds(target)[:1])
        refusal = ""
        for view in (first, self.view):
            made = make_claims(attack, view, (target,), self.knowledge, Seed(0))
            if not made.problems:
                return ""
            refusal = next(iter(made.problems.values()))
        return refusal


@final
@dataclass(frozen=True, slots=True, eq=False)
class PlannedAudit:
    """An audit before it begins.

    Args:
        program: all that it will do.
        views: what each threat will see in each arm, for the first seed.

    """

    program: AuditProgram
    views: tuple[PlannedView, ...]


def planned_audit(
    plan: Plan, audit_inputs: AuditInputs, recording: CheckedRecording | None
) -> PlannedAudit:
    """Return what an audit will do, and what its attackers will see; nothing is trained.

    Args:
        plan: the plan.
        audit_inputs: its data.
        recording: the recording to audit; None = a simulation.

    Raises:
        PlanError: if the plan does not fit the recording, or cannot be simulated.

    """
    if recording is not None:
        run = recording.open_proven_run()
        program = AuditProgram(plan, (run.observed.spec,))
        return PlannedAudit(program, tuple(_views(run.observed, run.truth.truth)))
    program = resolve_plan(plan, audit_inputs.data_digests())
    views = (
        view
        for run in program.runs
        if run.seed == plan.seeds[0] and not run.kind.is_control
        for view in _views(_sketched_run(plan, run, audit_inputs))
    )
    return PlannedAudit(program, tuple(views))


def _sketched_run(plan: Plan, run: RunSpec, audit_inputs: AuditInputs) -> ObservedRun:
    """Return a run with made-up messages."""
    partition = audit_inputs.partition(run.seed)
    federation = build_federation(
        plan, run.arm, run.seed, partition, audit_inputs.dataset, audit_inputs.resources
    )
    return ObservedRun(run, sketch_transcript(federation), audit_inputs.for_attackers(run.seed))


def _views(seen: ObservedRun, truth: GroundTruth | None = None) -> Iterator[PlannedView]:
    """Yield the view of each threat on a run."""
    run, transcript = seen.spec, seen.transcript
    for attacks in run.by_threat():
        threat = attacks[0].threat
        stable = threat.model_copy(update={"pseudonyms": "run"})
        observers = readers = threat.observer_parties
        if seen.recording is None:
            readers = sketched_observers(observers, len(run.rounds))
        algorithm = seen.inputs.plan.algorithm_of(run.arm)
        yield PlannedView(
            seen,
            attacks,
            with_means(transcript.seen_by(*readers), algorithm, threat, transcript.messages),
            select_targets(transcript.messages, transcript.parties(), stable, run.arm.defenses),
            attacker_knowledge(run.arm, threat, seen.inputs),
            find_contributors(transcript.messages, observers),
            truth,
        )


def sketch_transcript(federation: Federation) -> Transcript:
    """Return the messages of a few rounds in which every client takes part.

    The weights are fresh and the updates random: nothing is trained. All clients of a round
    send the same change, so that large federations fit into memory. What the messages tell is
    who can read them, and the shapes of their tensors. The model moves in each round, or it
    would look as if nobody had replied. A control variate is sent where the algorithm sends
    one: that of a run at its start.
    """
    at_home = local_names(federation.algorithm, federation.build_model)
    initial = initial_weights(federation.build_model, Seed(0))
    weights: Weights = {name: one for name, one in initial.items() if name not in at_home}
    everyone = frozenset(federation.clients)
    readers = frozenset[Party]() if federation.is_masked else TO_SERVER
    messages = list[Message]()
    for number in range(min(SKETCHED_ROUNDS, federation.rounds)):
        control = federation.algorithm.sent_control(ServerState(weights))
        sent = Broadcast(weights, control=control)
        messages.append(Message(number, SERVER, everyone, sent))
        if federation.distillation is not None:
            distilled = _distilled_set(federation)
            messages.append(Message(number, SERVER, everyone, distilled))
            messages += [Message(number, one, TO_SERVER, distilled) for one in everyone]
        change = _random_change(weights, Seed(0).child(number))
        for place, party in enumerate(federation.clients):
            size = max(1, len(federation.rows[number][place]))
            body: MessageBody = Update(change, size, {"loss": 1.0})
            messages.append(Message(number, Party(party), readers, body))
        if federation.is_masked:
            total = sum(map(len, federation.rows[number]))
            body = Aggregate(change, everyone, total)
            messages.append(Message(number, COHORT, TO_SERVER, body))
        weights = apply_update(weights, change)
    return Transcript(tuple(messages))


def sketched_observers(observers: Sequence[Party], rounds: int) -> tuple[Party, ...]:
    """Return observers of a sketch that see as much of it as these of a run.

    A run has a broadcast after its last round, and a sketch has none. A client that joins some
    broadcasts before the last one of the run does so in the sketch.
    """
    last = min(SKETCHED_ROUNDS, rounds) - 1
    return tuple(
        one
        if (joined := joining_round(one)) is None
        else late_joiner(max(0, last - (rounds - joined)))
        for one in observers
    )


def _random_change(weights: Weights, seed: Seed) -> dict[str, Tensor]:
    generator = seed.generator()
    return {
        name: STEP * torch.randn(weight.shape, generator=generator).to(weight.dtype)
        for name, weight in weights.items()
    }


def _distilled_set(federation: Federation) -> DistilledSet:
    classes = federation.task.classes
    inputs = torch.zeros(classes, *federation.task.shape)
    ones = torch.ones(classes)
    return DistilledSet(inputs, torch.eye(classes), STEP * ones, ones)
