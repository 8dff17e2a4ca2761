"""Which attacks of a plan can run on a run, found out without running them."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

import torch
from torch import Tensor

from overheard.auditing.attack_runner import observed_view, select_targets
from overheard.auditing.audited_run import AuditedRun
from overheard.auditing.cells.contributors import Contributors, find_contributors
from overheard.auditing.cells.threat_cells import missing_for_target
from overheard.auditing.inputs import AuditInputs
from overheard.auditing.knowledge import attacker_knowledge
from overheard.auditing.progress import Progress
from overheard.auditing.recording import prepare_recorded_runs
from overheard.auditing.simulate import build_federation
from overheard.auditing.work_items import name_observers_of_run, simulated_parties
from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    DistilledSet,
    Message,
    MessageBody,
    Update,
    Weights,
)
from overheard.core.own_code.attack_claims import make_claims
from overheard.core.parties import COHORT, SERVER, Party, joining_round, late_joiner
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.view import View
from overheard.federation.federation import Federation
from overheard.federation.home import home_names
from overheard.findings.names import name_observers
from overheard.learning.initialization import initial_weights
from overheard.planning.recorded_facts import RecordedFacts
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan
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
        able: number of targets on which it can run.
        missing: by what is missing, the number of targets for which it is missing.

    """

    arm: str
    threat: int
    observers: str
    attack: str
    part: str
    question: str
    able: int
    missing: tuple[tuple[str, int], ...]


@final
@dataclass(frozen=True, slots=True, eq=False)
class PlannedView:
    """What the observers of a threat will see in an arm, and what they know.

    Args:
        arm: the arm.
        name: name of the arm in the report.
        number: number of the threat.
        threat: the threat.
        view: the view; of a simulated run only a sketch.
        targets: the targets.
        knowledge: the attacker's knowledge.
        contributors: the clients that take part in each round.
        is_recorded: whether the view is that of a recording.
        refusal: why attacks on it are refused; "" = they are not.
        recording: what the check of the recording found; () = it is a sketch.

    """

    arm: ArmPlan
    name: str
    number: int
    threat: ThreatPlan
    view: View
    targets: tuple[Party, ...]
    knowledge: Knowledge
    contributors: Contributors
    is_recorded: bool
    refusal: str = ""
    recording: tuple[str, ...] = ()

    # Any: an attack answers a question of its own.
    def missing(self, attack: Attack[Any], target: Party) -> tuple[str, ...]:
        """Return what is missing for a target, in words; empty if it can run.

        Quick attacks on all rounds of a recording are tried, since only they know how many
        rounds they need.
        """
        if self.refusal:
            return (f"a recording that is what it says it is: {self.refusal}",)
        missing = missing_for_target(
            attack, self.view, self.contributors, self.knowledge, target
        )
        is_quick = attack.training_source() == "none"
        if missing or not (
            self.is_recorded and is_quick and question_of_attack(attack).needs_all_rounds
        ):
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
        for attack in self.threat.attacks:
            reasons = Counter[str]()
            able = 0
            for target in self.targets:
                missing = self.missing(attack, target)
                able += not missing
                reasons.update(missing)
            yield AttackOutlook(
                self.name,
                self.number,
                name_observers(self.threat.observer_parties),
                self.threat.attack_label(attack, self.arm),
                attack.name,
                question_of_attack(attack).name,
                able,
                tuple(reasons.items()),
            )


def planned_views(
    plan: Plan, audit_inputs: AuditInputs, facts: RecordedFacts | None
) -> tuple[PlannedView, ...]:
    """Return what each threat will see in each arm, for the first seed; nothing is trained.

    Args:
        plan: the plan.
        audit_inputs: its data.
        facts: the recording to audit; None = a simulation.

    Raises:
        PlanError: if the plan does not fit the recording, or cannot be simulated.

    """
    if facts is not None:
        stream = prepare_recorded_runs(plan, audit_inputs, facts.folder, Progress(None))
        return tuple(
            view
            for run in stream.runs
            for view in _views_of_recording(plan, stream.threats, run)
        )
    threats = name_observers_of_run(plan, simulated_parties(plan)).threats
    seed = plan.seeds[0]
    partition = audit_inputs.partition(seed)
    found = list[PlannedView]()
    for arm in plan.arms:
        federation = build_federation(
            plan, arm, seed, partition, audit_inputs.dataset.task, audit_inputs.resources
        )
        transcript = sketch_transcript(federation)
        know = partial(attacker_knowledge, arm, seed, audit_inputs)
        sketched = partial(sketched_observers, rounds=federation.rounds)
        found.extend(_views(plan, threats, arm, arm.name, transcript, know, sketched))
    return tuple(found)


def _views_of_recording(
    plan: Plan, threats: Sequence[ThreatPlan], run: AuditedRun
) -> Iterator[PlannedView]:
    seen, recording = run.observed, run.observed.recording
    for view in _views(
        plan, threats, seen.arm, seen.name, seen.transcript, seen.knowledge, None
    ):
        assert recording is not None, "a recording was opened"
        refusal = recording.refusal(view.threat.observer_parties)
        yield replace(view, refusal=refusal, recording=recording.sentences)


def _views(
    plan: Plan,
    threats: Sequence[ThreatPlan],
    arm: ArmPlan,
    name: str,
    transcript: Transcript,
    know: Callable[[ThreatPlan], Knowledge],
    sketched: Callable[[Sequence[Party]], tuple[Party, ...]] | None,
) -> Iterator[PlannedView]:
    """Yield the view of each threat.

    Args:
        plan: the plan.
        threats: the threats.
        arm: the arm.
        name: its name in the report.
        transcript: the messages.
        know: returns the attacker's knowledge.
        sketched: returns the observers of a sketch; None = the messages are a recording's.

    """
    for number, threat in enumerate(threats):
        stable = threat.model_copy(update={"pseudonyms": "run"})
        observers = threat.observer_parties
        yield PlannedView(
            arm,
            name,
            number,
            threat,
            observed_view(
                plan,
                arm,
                threat,
                transcript,
                observers if sketched is None else sketched(observers),
            ),
            select_targets(transcript, stable),
            know(threat),
            find_contributors(transcript.messages, observers),
            sketched is None,
        )


def sketch_transcript(federation: Federation) -> Transcript:
    """Return the messages of a few rounds in which every client takes part.

    The weights are fresh and the updates random: nothing is trained. All clients of a round
    send the same change, so that large federations fit into memory. What the messages tell is
    who can read them, and the shapes of their tensors.
    """
    at_home = home_names(federation.algorithm, federation.build_model)
    initial = initial_weights(federation.build_model, Seed(0))
    weights = {name: one for name, one in initial.items() if name not in at_home}
    everyone = frozenset(federation.clients)
    readers = frozenset[Party]() if federation.is_masked else TO_SERVER
    messages = list[Message]()
    for number in range(min(SKETCHED_ROUNDS, federation.rounds)):
        messages.append(Message(number, SERVER, everyone, Broadcast(weights)))
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
