"""Runs the attacks of a threat on a run: findings, or refusals with their reasons."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from overheard.archive.tensor_cache import CodeTensorCache
from overheard.auditing.audited_run import AuditedRun
from overheard.auditing.cells.threat_cells import (
    ObservedRun,
    PlannedAttack,
    ThreatCells,
    known_rounds,
)
from overheard.auditing.progress import Progress
from overheard.auditing.pseudonyms import PseudonymizedRun, pseudonymize
from overheard.auditing.work_items import applies_to_run, single_rounds
from overheard.core.algorithm.deduced_view import deduce_means
from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.parties import COHORT, SERVER, Party, is_shadow_device, party_sort_key
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.truth import EMPTY_GROUND_TRUTH, GroundTruth
from overheard.core.view import View
from overheard.findings.finding import Cell
from overheard.findings.result_cache import CellResult, ResultStore
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan
from overheard.plans.registries import question_of_attack


def run_attacks(
    plan: Plan, run: AuditedRun, threat: ThreatPlan, store: ResultStore, progress: Progress
) -> Iterator[CellResult]:
    """Run all attacks of a threat of the plan on one run; yield a result for each cell."""
    known = EMPTY_GROUND_TRUTH if run.truth is None else run.truth
    messages = _name_senders(run, threat, known)
    view = observed_view(plan, run.arm, threat, messages.transcript, threat.observer_parties)
    # Observers know their own data, so a claim about the cohort is about the other clients.
    truth = (
        None if run.truth is None else messages.truth.without_parties(threat.observer_parties)
    )
    targets = select_targets(messages.transcript, threat)
    observed = {
        target: known_rounds(view.rounds_with_updates(target), truth, target)
        for target in targets
    }
    knowledge = cache(partial(run.knowledge, threat))
    observed_run = ObservedRun(
        view,
        truth,
        cache(partial(_draw_again, run, threat)),
        store,
        run.rounds,
        messages.clients,
    )
    attacks = [
        _planned_attack(run, threat, attack, knowledge, progress)
        for attack in threat.attacks
        if applies_to_run(question_of_attack(attack), run.record.is_control)
    ]
    cells = ThreatCells(observed_run, attacks)
    for attack in attacks:
        all_rounds = cells.run(attack, run.rounds, targets)
        yield all_rounds
        progress.advance(attack.describe(run.rounds))
        for number in single_rounds(threat, attack.question, run.rounds):
            # Clients without an observed update in this round are skipped. Clients without one
            # in any round were refused above.
            present = [target for target in targets if number in observed[target]]
            if present and all_rounds.findings and len(run.rounds) > 1:
                yield cells.run(attack, (number,), present)
            progress.advance(attack.describe((number,), is_single=True))


def _planned_attack(
    run: AuditedRun,
    threat: ThreatPlan,
    attack: Attack[Any],
    knowledge: Callable[[], Knowledge],
    progress: Progress,
) -> PlannedAttack:
    question, code = question_of_attack(attack), run.codes(threat, attack)
    return PlannedAttack(
        attack,
        question,
        _make_cell(run, threat, attack, question.name),
        code.of_cells,
        partial(_with_progress, knowledge, progress, code.of_simulations),
    )


def observed_view(
    plan: Plan,
    arm: ArmPlan,
    threat: ThreatPlan,
    transcript: Transcript,
    observers: Sequence[Party],
) -> View:
    """Return the view of these observers, with the mean updates that they can compute."""
    view = transcript.seen_by(*observers)
    algorithm, is_known = plan.algorithm_of(arm), "recipe" in threat.knows
    if is_known and threat.pseudonyms == "run":
        view = algorithm.plain_updates(view)
    return deduce_means(view, algorithm, is_known=is_known)


def _name_senders(run: AuditedRun, threat: ThreatPlan, truth: GroundTruth) -> PseudonymizedRun:
    """Return the run and this truth under the names that senders have in a threat."""
    if threat.pseudonyms == "run":
        return PseudonymizedRun(run.transcript, truth)
    draws = Seed(run.record.seed).child("pseudonyms")
    return pseudonymize(run.transcript, truth, draws)


def _draw_again(run: AuditedRun, threat: ThreatPlan) -> GroundTruth:
    """Return the ground truth with partitions drawn anew: takes long, so only if needed."""
    assert run.truth is not None, "a run without a ground truth has no partitions"
    truth = _name_senders(run, threat, run.with_redrawn(run.truth, threat)).truth
    return truth.without_parties(threat.observer_parties)


def _make_cell(run: AuditedRun, threat: ThreatPlan, attack: Attack[Any], question: str) -> Cell:
    """Return the cell of an attack on all rounds of a run."""
    return Cell(
        arm=run.record.arm,
        seed=run.record.seed,
        observers=threat.observer_parties,
        attack=threat.attack_name(attack),
        settings=repr(attack),
        question=question,
        rounds=run.rounds,
        is_control=run.record.is_control,
        control=run.record.control,
        control_number=run.record.control_number,
        part=attack.name,
        label=threat.attack_label(attack, run.arm),
        is_adaptive=threat.adapts_to_defenses(attack, run.arm),
    )


def _with_progress(
    knowledge: Callable[[], Knowledge], progress: Progress, code: str, description: str
) -> Knowledge:
    """Return the attacker's knowledge, set up to report the progress of the attack.

    Its simulations are stored as those of this code.
    """
    known = knowledge()
    cache = CodeTensorCache(known.compute.cache, code)
    on_progress = partial(progress.report_subtask, description)
    settings = replace(known.compute, cache=cache, on_progress=on_progress)
    return replace(known, compute=settings)


def select_targets(transcript: Transcript, threat: ThreatPlan) -> tuple[Party, ...]:
    """Return the parties that a threat asks about, in order."""
    if threat.about == "cohort":
        return (COHORT,)
    parties = transcript.parties()
    if threat.pseudonyms == "round":
        # Clients read broadcasts under their own names but send under pseudonyms.
        parties = tuple({message.sender for message in transcript.messages})
    clients = [
        party
        for party in parties
        if party not in (SERVER, COHORT) and not is_shadow_device(party)
    ]
    return tuple(sorted(set(clients) - set(threat.observer_parties), key=party_sort_key))
