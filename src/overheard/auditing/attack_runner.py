"""Runs the attacks of a threat on a run: findings, or refusals with their reasons."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from overheard.archive.tensor_cache import CodeTensorCache
from overheard.auditing.audited_run import AuditedRun
from overheard.auditing.plan_code import cell_code, simulation_code
from overheard.auditing.progress import Progress
from overheard.auditing.pseudonyms import PseudonymizedRun, pseudonymize
from overheard.auditing.work_items import applies_to_run, single_rounds
from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.algorithm.deduced_view import deduce_means
from overheard.core.attack import Attack, missing_needs
from overheard.core.claims import Claim
from overheard.core.errors import ClaimError, NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.needs import CLASSES, MODEL
from overheard.core.own_code.attack_claims import describe_claim_failure, make_claims
from overheard.core.parties import COHORT, SERVER, Party, is_shadow_device, party_sort_key
from overheard.core.scorer import Scorer
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.truth import EMPTY_GROUND_TRUTH, GroundTruth
from overheard.core.view import View
from overheard.findings.finding import Cell, Finding, Refusal
from overheard.findings.question import Question
from overheard.findings.result_cache import CellResult, ResultStore
from overheard.plans.plan import ArmPlan, Plan, ThreatPlan
from overheard.plans.registries import question_of_attack

NO_OTHER_UPDATE = "an update from a client that is not an observer"
"""What is missing if only the observers' own updates are visible."""

LAST_LAYER_AT_HOME = "the last layer of the model, which stays with each client"
"""What is missing in addition to the architecture if nobody sends the last layer."""


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
        target: _known_rounds(view.rounds_with_updates(target), truth, target)
        for target in targets
    }
    knowledge = cache(partial(run.knowledge, threat))
    redrawn_truth = cache(partial(_draw_again, run, threat))
    for attack in threat.attacks:
        question = question_of_attack(attack)
        if not applies_to_run(question, run.record.is_control):
            continue
        cell = _make_cell(run, threat, attack, question.name)
        run_name = f"seed {cell.seed}{_control_name(cell)}"
        description = f"{cell.arm}, {run_name}: {cell.attack}"
        simulated = simulation_code(plan, run.arm, threat, attack)
        knowledge_at = partial(_with_progress, knowledge, progress, simulated)
        run_cell = partial(
            _run_cell,
            attack,
            question,
            view,
            truth,
            redrawn_truth,
            knowledge_at,
            store,
            cell_code(plan, run.arm, threat, attack),
            run.rounds,
            messages.clients,
        )
        all_rounds = run_cell(cell, targets, description)
        yield all_rounds
        progress.advance(description)
        for number in single_rounds(threat, question, run.rounds):
            # Clients without an observed update in this round are skipped. Clients without one
            # in any round were refused above.
            present = [target for target in targets if number in observed[target]]
            in_round = f"{description}, round {number}"
            if present and all_rounds.findings and len(run.rounds) > 1:
                yield run_cell(replace(cell, rounds=(number,)), present, in_round)
            progress.advance(in_round)


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


def _control_name(cell: Cell) -> str:
    """Name the control of a cell for a line of progress; nothing for a planned run."""
    if not cell.is_control:
        return ""
    number = f" {cell.control_number + 1}" if cell.control_number else ""
    return f", {cell.control} control{number}" if cell.control else ", control"


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


def _run_cell(
    attack: Attack[Any],
    # Any: a question takes the claims of its own attacks.
    question: Question[Any],
    view: View,
    truth: GroundTruth | None,
    redrawn_truth: Callable[[], GroundTruth],
    knowledge_at: Callable[[str], Knowledge],
    store: ResultStore,
    code: str,
    all_rounds: Sequence[int],
    clients: Mapping[Party, Party],
    cell: Cell,
    targets: Sequence[Party],
    description: str,
) -> CellResult:
    """Run one attack on some rounds and score its claims; load the result if it is stored."""
    stored = store.load(cell, code)
    if stored is not None:
        return stored
    knowledge, observed = knowledge_at(description), view.during(cell.rounds)
    missing = {
        target: missing_for_target(attack, observed, truth, knowledge, target)
        for target in targets
    }
    able = [target for target in targets if not missing[target]]
    refusals = [Refusal(cell, target, missing[target]) for target in targets if missing[target]]
    seed = Seed(cell.seed).child("attack", cell.attack)
    made = make_claims(attack, observed, able, knowledge, seed)
    refusals += [Refusal(cell, target, (why,)) for target, why in made.problems.items()]
    findings, has_failed = list[Finding](), made.has_failed
    for target, claim in made.claims.items():
        try:
            finding = _make_finding(cell, target, claim, question.scorer, truth, knowledge)
            sent = tuple(observed.observed_rounds(target))
            finding = replace(finding, sent_rounds=sent, client=clients.get(target, ""))
            if truth is not None and cell.rounds == tuple(all_rounds):
                fits = question.redrawn_fits(claim, redrawn_truth(), target, cell.rounds)
                finding = replace(finding, redrawn_fits=fits)
            findings.append(finding)
        except NeedsError as error:
            # The ground truth has no entry for what is claimed, such as the user behind a
            # client.
            refusals.append(Refusal(cell, target, (str(error),)))
        except ClaimError as error:
            has_failed = True
            refusals.append(Refusal(cell, target, (describe_claim_failure(attack, error),)))
    result = CellResult(cell, tuple(findings), tuple(refusals), code)
    if not has_failed:
        store.save(result)
    return result


def _known_rounds(
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
    if missing or _known_rounds(view.observed_rounds(target), truth, target):
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
        candidates=claim.candidates(),
        none_of_them=claim.unknown_probability(),
        doubt=claim.doubt(),
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
