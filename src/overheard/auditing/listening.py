"""Lets the attacks of one threat listen to one run: findings, or refusals that say why."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from overheard.auditing.heard import Heard
from overheard.auditing.progress import Progress
from overheard.auditing.pseudonyms import Renamed, renamed
from overheard.auditing.work import listens, rounds_alone
from overheard.core.attack import Attack, missing_needs
from overheard.core.claims import Claim
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.parties import COHORT, SERVER, Party, by_number, is_shadow
from overheard.core.scorer import Scorer
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.truth import NO_TRUTH, GroundTruth
from overheard.core.view import View
from overheard.findings.cells import CellResult, CellStore
from overheard.findings.finding import Cell, Finding, Refusal
from overheard.plans.kinds import question_of
from overheard.plans.plan import ThreatPlan

NOBODY = "an answer of somebody who does not observe"
"""What is missing where only the observers' own updates are visible."""


def listen(
    run: Heard, threat: ThreatPlan, store: CellStore, progress: Progress
) -> Iterator[CellResult]:
    """Let all attacks of one threat listen to one run, a result for each cell."""
    said = Renamed(run.transcript, run.truth or NO_TRUTH)
    if threat.pseudonyms == "round":
        draws = Seed(run.record.seed).child("pseudonyms")
        said = renamed(said.transcript, said.truth, draws)
    view = said.transcript.seen_by(*threat.listeners)
    # Observers know their own data: asked about all, they are asked about the rest.
    truth = None if run.truth is None else said.truth.without(threat.listeners)
    targets = _targets(said.transcript, threat)
    heard = {who: _heard(view, truth, who) for who in targets}
    knowledge = cache(partial(run.knowledge, threat))
    for attack in threat.attacks:
        question = question_of(attack)
        if not listens(question, run.record.is_control):
            continue
        cell = Cell(
            arm=run.record.arm,
            seed=run.record.seed,
            observers=threat.listeners,
            attack=threat.named(attack),
            settings=repr(attack),
            question=question.name,
            rounds=run.rounds,
            is_control=run.record.is_control,
            part=attack.name,
            label=threat.label(attack, run.arm),
            is_adaptive=threat.adapts(attack, run.arm),
        )
        run_name = f"seed {cell.seed}{', control' if cell.is_control else ''}"
        what = f"{cell.arm}, {run_name}: {cell.attack}"
        told = partial(_told, knowledge, progress)
        hear = partial(_listen, attack, question.scorer, view, truth, told, store)
        whole = hear(cell, targets, what)
        yield whole
        progress.tick(what)
        for number in rounds_alone(threat, question, run.rounds):
            # A client that sat out a round has nothing in it to be read; one whose updates can
            # be read in no round at all was refused above.
            there = [target for target in targets if number in heard[target]]
            during = f"{what}, round {number}"
            if there and whole.findings and len(run.rounds) > 1:
                yield hear(replace(cell, rounds=(number,)), there, during)
            progress.tick(during)


def _told(knowledge: Callable[[], Knowledge], progress: Progress, what: str) -> Knowledge:
    """Return what an attacker knows, and let it report the progress of its own work."""
    known = knowledge()
    return replace(
        known, means=replace(known.means, on_progress=partial(progress.beside, what))
    )


def _listen(
    attack: Attack[Any],
    scorer: Scorer[Any],
    view: View,
    truth: GroundTruth | None,
    knowledge_at: Callable[[str], Knowledge],
    store: CellStore,
    cell: Cell,
    targets: Sequence[Party],
    what: str,
) -> CellResult:
    """Let one attack listen to some rounds, claim and be scored, unless it was before."""
    known = store.load(cell)
    if known is not None:
        return known
    knowledge, heard = knowledge_at(what), view.during(cell.rounds)
    lacks = {target: _lacks(attack, heard, truth, knowledge, target) for target in targets}
    able = [target for target in targets if not lacks[target]]
    refusals = [Refusal(cell, target, lacks[target]) for target in targets if lacks[target]]
    seed, claims = Seed(cell.seed).child("attack", cell.attack), dict[Party, Claim]()
    try:
        claims |= attack.infer(heard, able, knowledge, seed) if able else {}
    except NeedsError:
        # What one target lacks is no reason to be silent about the others.
        for target in able:
            try:
                claims |= attack.infer(heard, (target,), knowledge, seed)
            except NeedsError as error:
                refusals.append(Refusal(cell, target, (str(error),)))
    findings = list[Finding]()
    for target, claim in claims.items():
        try:
            findings.append(_finding(cell, target, claim, scorer, truth, knowledge))
        except NeedsError as error:
            # The truth does not say what was claimed, as of who is behind a client.
            refusals.append(Refusal(cell, target, (str(error),)))
    result = CellResult(cell, tuple(findings), tuple(refusals))
    store.save(result)
    return result


def _heard(view: View, truth: GroundTruth | None, target: Party) -> frozenset[int]:
    """The rounds in which the target was heard; none where all came of the observers."""
    heard = frozenset(view.heard(target))
    if truth is None or not truth.are_counts_told:
        return heard
    return truth.rounds_of(target) & heard


def _lacks(
    attack: Attack[Any],
    heard: View,
    truth: GroundTruth | None,
    knowledge: Knowledge,
    target: Party,
) -> tuple[str, ...]:
    missing = missing_needs(attack, heard, target, knowledge)
    if missing or _heard(heard, truth, target):
        return missing
    return (NOBODY,)


def _finding(
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
        none_of_them=claim.none_of_them(),
    )
    if truth is None:
        guesses = scorer.blind(claim, knowledge)
        return replace(
            claimed,
            is_checked=False,
            blind={name: one.numbers() for name, one in guesses.items()},
        )
    true: Claim = scorer.truth(truth, target, cell.rounds, claim)
    return replace(
        claimed,
        true=true.numbers(),
        scores=scorer.score(claim, true, scorer.guesses(true, knowledge)),
        true_since=None if (told := true.timeline()) is None else told.since,
        true_user=truth.users.get(target),
    )


def _targets(transcript: Transcript, threat: ThreatPlan) -> tuple[Party, ...]:
    if threat.about == "cohort":
        return (COHORT,)
    parties = transcript.parties()
    if threat.pseudonyms == "round":
        # Clients stay the readers of what is broadcast; what they send is under other names.
        parties = tuple({message.sender for message in transcript.messages})
    clients = [who for who in parties if who not in (SERVER, COHORT) and not is_shadow(who)]
    return tuple(sorted(set(clients) - set(threat.listeners), key=by_number))
