"""Runs the attacks of a threat on a run: claims, or refusals with their reasons."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from overheard.archive.tensor_cache import CodeTensorCache
from overheard.auditing.cells.cell_claims import CellClaims
from overheard.auditing.cells.claim_store import ClaimStore
from overheard.auditing.cells.contributors import find_contributors
from overheard.auditing.cells.threat_cells import PlannedAttack, ThreatCells, ThreatView
from overheard.auditing.observed_run import ObservedRun
from overheard.auditing.progress import Progress
from overheard.auditing.pseudonyms import Pseudonyms, draw_pseudonyms
from overheard.auditing.work_items import applies_to_run, single_rounds
from overheard.core.algorithm.deduced_view import deduce_means
from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.parties import COHORT, SERVER, Party, is_shadow_device, party_sort_key
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.view import View
from overheard.findings.finding import Cell
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan
from overheard.plans.registries import question_of_attack


def run_attacks(
    plan: Plan, run: ObservedRun, threat: ThreatPlan, store: ClaimStore, progress: Progress
) -> Iterator[CellClaims]:
    """Run all attacks of a threat of the plan on one run; yield the claims of each cell."""
    transcript, observers = run.transcript, threat.observer_parties
    pseudonyms = pseudonyms_of(run, threat)
    if pseudonyms is not None:
        transcript = pseudonyms.rename_senders(transcript)
    view = observed_view(plan, run.arm, threat, transcript, observers)
    targets = select_targets(transcript, threat)
    contributors = find_contributors(transcript.messages, observers)
    observed = {
        target: contributors.rounds_of(target, view.rounds_with_updates(target))
        for target in targets
    }
    knowledge = cache(partial(run.knowledge, threat))
    attacks = [
        _planned_attack(run, threat, attack, knowledge, progress)
        for attack in threat.attacks
        if applies_to_run(question_of_attack(attack), run.kind.is_control)
    ]
    why = "" if run.recording is None else run.recording.refusal(observers)
    if why:
        yield from _refuse(run, threat, attacks, targets, why, progress)
        return
    cells = ThreatCells(ThreatView(view, contributors, store, run.rounds), attacks)
    for attack in attacks:
        all_rounds = cells.run(attack, run.rounds, targets)
        yield all_rounds
        progress.advance(attack.describe(run.rounds))
        for number in single_rounds(threat, attack.question, run.rounds):
            # Clients without an observed update in this round are skipped. Clients without one
            # in any round were refused above.
            present = [target for target in targets if number in observed[target]]
            if present and all_rounds.claims and len(run.rounds) > 1:
                yield cells.run(attack, (number,), present)
            progress.advance(attack.describe((number,), is_single=True))


def _refuse(
    run: ObservedRun,
    threat: ThreatPlan,
    attacks: Sequence[PlannedAttack],
    targets: Sequence[Party],
    why: str,
    progress: Progress,
) -> Iterator[CellClaims]:
    """Yield a cell without claims for each attack, as the recording contradicts itself."""
    for attack in attacks:
        yield CellClaims(
            attack.of_rounds(run.rounds),
            {},
            dict.fromkeys(targets, (why,)),
            kinds=dict.fromkeys(targets, "contradicted"),
        )
        progress.advance(attack.describe(run.rounds))
        for number in single_rounds(threat, attack.question, run.rounds):
            progress.advance(attack.describe((number,), is_single=True))


def pseudonyms_of(run: ObservedRun, threat: ThreatPlan) -> Pseudonyms | None:
    """Return the names that senders have in a threat; None = they keep their own."""
    if threat.pseudonyms == "run":
        return None
    return draw_pseudonyms(run.transcript, Seed(run.seed).child("pseudonyms"))


def _planned_attack(
    run: ObservedRun,
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


def _make_cell(
    run: ObservedRun, threat: ThreatPlan, attack: Attack[Any], question: str
) -> Cell:
    """Return the cell of an attack on all rounds of a run."""
    return Cell(
        arm=run.name,
        seed=run.seed,
        observers=threat.observer_parties,
        attack=threat.attack_name(attack),
        settings=repr(attack),
        question=question,
        rounds=run.rounds,
        is_control=run.kind.is_control,
        control=run.kind.draws,
        control_number=run.kind.number,
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
