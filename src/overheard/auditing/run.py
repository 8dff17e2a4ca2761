"""The one loop: arm x seed x threat x attack x targets -> findings | refusals."""

import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from overheard.archive.manifest import read_manifest
from overheard.archive.shelf import FolderShelf
from overheard.auditing.folder import AuditFolder
from overheard.auditing.heard import Heard, simulated
from overheard.auditing.pseudonyms import Renamed, renamed
from overheard.auditing.recording import identity, recorded
from overheard.auditing.simulate import (
    Resources,
    refuse_to_simulate_nothing,
    supply,
)
from overheard.auditing.work import cells, controls, listens, pieces, rounds_alone
from overheard.core.attack import Attack, missing_needs
from overheard.core.claims import Claim
from overheard.core.errors import NeedsError, PlanError
from overheard.core.knowledge import Knowledge
from overheard.core.parties import COHORT, SERVER, Party, client, is_shadow
from overheard.core.scorer import Scorer
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.truth import NO_TRUTH, GroundTruth
from overheard.core.view import View
from overheard.findings.cells import CellResult, CellStore
from overheard.findings.finding import Audit, Cell, Finding, Refusal
from overheard.learning.threads import one_thread
from overheard.plans.kinds import question_of
from overheard.plans.packages import packages_of
from overheard.plans.plan import Plan, ThreatPlan
from overheard.plans.subject import subject_of_plan, subject_of_recording

PACKAGES = ("overheard", "torch", "numpy", "scipy", "scikit-learn", "safetensors")

NOBODY = "an answer of somebody who does not observe"
"""Lacks where all that was heard came of the observers themselves."""


@dataclass(frozen=True, slots=True)
class Step:
    """How far an audit has come: `done` of `total` pieces of work, now at `what`."""

    what: str
    done: int
    total: int


OnStep = Callable[[Step], None]


def audit(
    plan: Plan,
    folder: Path,
    *,
    resources: Resources | None = None,
    recording: Path | None = None,
    on_step: OnStep | None = None,
) -> Audit:
    """Let every attack of a plan listen to every run, and hold its claims against the truth.

    What was done before in the same folder is not done again.

    Args:
        plan: what to audit.
        folder: for the transcripts and for what is found.
        resources: where the data lie and what the work is done on.
        recording: folder of a recorded run to listen to in place of the plan's federations;
            the plan's data then give the auxiliary examples. It has `transcript/` and, if
            claims are to be held against it, `truth.json`.
        on_step: told of each piece of work that is done.

    Raises:
        AuditError: one of its leaves, saying what to mend; what was found before stays.

    """
    home = AuditFolder(folder)
    source = "" if recording is None else f"# recording {identity(recording)}\n"
    packages = packages_of(plan)
    others = "".join(f"# {name} {number}\n" for name, number in packages.items())
    claim = f"# overheard {version('overheard')}\n{others}{source}{plan.toml()}"
    # All that can be refused is refused before anything is written.
    home.check(claim)
    resources = resources or Resources()
    supplies = supply(plan, resources, FolderShelf(resources.bank or home.bank))
    if recording is None:
        refuse_to_simulate_nothing(plan)
        for is_control in controls(plan):
            supplies.partition(plan.seeds[0], is_control)
        _refuse_strangers(plan, (SERVER, *map(client, range(plan.data.clients))))
        subject = subject_of_plan(plan)
        ticker = _Ticker(on_step, pieces(plan))
        heard = simulated(plan, supplies, home, ticker.rounds)
    else:
        run = recorded(plan, supplies, recording)
        _refuse_strangers(plan, run.transcript.parties())
        subject = subject_of_recording(
            plan, read_manifest(recording), len(run.transcript.parties()), len(run.rounds)
        )
        ticker = _Ticker(on_step, cells(plan, len(run.rounds), is_control=False))
        heard = iter((run,))
    home.claim(claim)
    store, runs, results = CellStore(home.cells), [], list[CellResult]()
    # The same bits whatever the machine's number of cores; see `one_thread` for the speed.
    with one_thread():
        for run in heard:
            runs.append(run.record)
            for threat in plan.threats:
                results.extend(_threaten(run, threat, store, ticker))
    return Audit(
        title=plan.title,
        subject=subject,
        class_names=supplies.dataset.task.class_names,
        arms=tuple(runs),
        findings=tuple(finding for result in results for finding in result.findings),
        refusals=tuple(refusal for result in results for refusal in result.refusals),
        plan=plan.toml(),
        versions={name: version(name) for name in PACKAGES}
        | {"python": platform.python_version()}
        | dict(packages),
    )


def _threaten(
    run: Heard, threat: ThreatPlan, store: CellStore, ticker: "_Ticker"
) -> Iterator[CellResult]:
    """All cells of one threat to one run."""
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
        if not listens(attack, run.record.is_control):
            continue
        scorer = question_of(attack).scorer
        cell = Cell(
            arm=run.record.arm,
            seed=run.record.seed,
            observers=threat.listeners,
            attack=threat.named(attack),
            settings=repr(attack),
            question=scorer.name,
            rounds=run.rounds,
            is_control=run.record.is_control,
        )
        run_name = f"seed {cell.seed}{', control' if cell.is_control else ''}"
        what = f"{cell.arm}, {run_name}: {cell.attack}"
        told = partial(_told, knowledge, ticker)
        listen = partial(_listen, attack, scorer, view, truth, told, store)
        whole = listen(cell, targets, what)
        yield whole
        ticker.tick(what)
        for number in rounds_alone(threat, attack, run.rounds):
            # A client that sat out a round has nothing in it to be read; one whose updates can
            # be read in no round at all was refused above.
            there = [target for target in targets if number in heard[target]]
            during = f"{what}, round {number}"
            if there and whole.findings and len(run.rounds) > 1:
                yield listen(replace(cell, rounds=(number,)), there, during)
            ticker.tick(during)


def _told(knowledge: Callable[[], Knowledge], ticker: "_Ticker", what: str) -> Knowledge:
    """What an attacker knows; how far it has come in its own work is told beside `what`."""
    known = knowledge()
    return replace(known, means=replace(known.means, on_progress=partial(ticker.beside, what)))


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
    return tuple(sorted(set(clients) - set(threat.listeners), key=_natural))


def _natural(who: Party) -> tuple[str, int, str]:
    """Order client/2 before client/10."""
    kind, _, number = who.rpartition("/")
    return (kind, int(number), "") if number.isdecimal() else (kind, -1, number)


def _refuse_strangers(plan: Plan, parties: Sequence[Party]) -> None:
    """One who takes no part hears nothing, which would read as if nothing leaked."""
    known = sorted(parties, key=_natural)
    for number, threat in enumerate(plan.threats):
        for observer in threat.listeners:
            if observer not in known:
                raise PlanError(
                    f"threats.{number}.observers: {observer} takes no part in the run: name "
                    f"some of {', '.join(known)}"
                )


class _Ticker:
    """Counts pieces of work; tells when some are done."""

    def __init__(self, on_step: OnStep | None, total: int) -> None:
        self._base = 0
        self._done = 0
        self._on_step = on_step
        self._total = total

    def tick(self, what: str) -> None:
        """One more piece of work is done."""
        self._tell(what, self._done + 1)
        self._base = self._done

    def rounds(self, what: str, done: int) -> None:
        """So many rounds are done of the runs that started after the last tick."""
        self._tell(what, self._base + done)

    def beside(self, what: str, work: str, done: int, total: int) -> None:
        """So much is done of the work within a piece; the count of pieces stays."""
        self._tell(f"{what}: {work} {done} of {total}", self._done)

    def _tell(self, what: str, done: int) -> None:
        self._done = done
        if self._on_step is not None:
            self._on_step(Step(what, done, self._total))
