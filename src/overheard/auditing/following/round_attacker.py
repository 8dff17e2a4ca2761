"""Attacks on the latest rounds of a growing recording."""

from collections import deque
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path
from time import monotonic
from typing import final

from overheard.archive.layout import count_committed_rounds
from overheard.archive.reader import read_round
from overheard.auditing.attacked_run import claims_of_threat
from overheard.auditing.audited_run import AuditedRun
from overheard.auditing.cells.claim_store import NoClaimStore
from overheard.auditing.following.growing_recording import GrowingRecording
from overheard.auditing.inputs import AuditInputs
from overheard.auditing.judging.judge import AttackedRun, ClaimsOfThreat, judge
from overheard.auditing.program import AttackSpec
from overheard.auditing.progress import Progress
from overheard.auditing.recorded_tensors.model_tensors import select_matched_tensors
from overheard.auditing.recording import (
    CheckedRecording,
    check_recording,
    with_proof,
    without_idle_updates,
)
from overheard.auditing.subject import recorded_subject
from overheard.consistency.check import RecordingCheck
from overheard.consistency.proof import Reason, RecordingProof
from overheard.core.errors import TranscriptError
from overheard.core.parties import Party
from overheard.findings.audit import Audit
from overheard.findings.audited_recording import AuditedRecording
from overheard.findings.lost_replies import describe_lost_replies, find_lost_replies
from overheard.plans.description import describe_recording
from overheard.plans.plan import Plan, ThreatPlan

AttackKey = tuple[tuple[Party, ...], str]
"""The observers and the full name of an attack."""

REMEMBERED_ROUNDS = 10
"""Rounds from which the time between two rounds is estimated."""

SHARE_OF_TIME = 0.5
"""Most of the time that an attack which takes longer than a round may use."""


@final
class Pace:
    """Decides which attacks are repeated at a new round.

    Attacks that together fit into the time of a round are repeated at each round. Of the
    others, one at a time is repeated, and each uses at most half of the time. Otherwise they
    would delay the quick ones at every round.
    """

    def __init__(self) -> None:
        self._arrivals = deque[tuple[int, float]](maxlen=REMEMBERED_ROUNDS)
        self._seconds = dict[AttackKey, float]()
        self._last_round = dict[AttackKey, int]()

    def note_round(self, rounds: int, now: float) -> None:
        """Note that the run has this many rounds now, by a clock in seconds."""
        self._arrivals.append((rounds, now))

    def note_attack(self, attack: AttackKey, rounds: int, seconds: float) -> None:
        """Note how long an attack took when the run had this many rounds."""
        self._seconds[attack] = seconds
        self._last_round[attack] = rounds

    @property
    def seconds_per_round(self) -> float | None:
        """The mean time between two rounds; None = not known yet."""
        if len(self._arrivals) < 2:
            return None
        (first, begin), (last, end) = self._arrivals[0], self._arrivals[-1]
        return (end - begin) / max(1, last - first)

    def rounds_between(self, attack: AttackKey) -> int:
        """Return at every how many rounds an attack is repeated; 1 = at each round."""
        return self._plan().get(attack, 1)

    def quick(self, attacks: Iterable[AttackKey]) -> tuple[AttackKey, ...]:
        """Return the attacks that are repeated at each round, the quickest first."""
        plan = self._plan()
        chosen = [one for one in attacks if plan.get(one, 1) == 1]
        return tuple(sorted(chosen, key=lambda one: self._seconds.get(one, 0.0)))

    def slow(self, attacks: Iterable[AttackKey], rounds: int) -> AttackKey | None:
        """Return the slow attack to repeat now that the run has this many rounds, if any."""
        plan = self._plan()
        waited = {
            one: rounds - self._last_round[one] for one in attacks if plan.get(one, 1) > 1
        }
        ready = [one for one, count in waited.items() if count >= plan[one]]
        return max(ready, key=lambda one: waited[one], default=None)

    def _plan(self) -> dict[AttackKey, int]:
        """Return at every how many rounds each attack that was timed is repeated."""
        between, plan, used = self.seconds_per_round, dict[AttackKey, int](), 0.0
        for attack, seconds in sorted(self._seconds.items(), key=lambda item: item[1]):
            used += seconds
            if between is None or used <= between:
                plan[attack] = 1
            else:
                plan[attack] = max(2, ceil(seconds / (SHARE_OF_TIME * max(between, 1e-9))))
        return plan


@final
@dataclass(frozen=True, slots=True)
class FollowedRound:
    """What attacks claim after a new round of a growing recording.

    Args:
        number: the number of the round, from 0.
        rounds: the number of rounds with updates so far.
        delay: seconds from the round's commit to these claims.
        audit: the latest results of all attacks.
        notes: what a reader should know, such as an attack that is not repeated at each round.

    """

    number: int
    rounds: int
    delay: float
    audit: Audit
    notes: tuple[str, ...] = ()


@final
class RoundAttacker:
    """Attacks the latest rounds of a growing recording.

    Args:
        audit_inputs: the inputs of the plan's audit.
        recording: the folder of the recording.
        growing: its latest rounds.

    """

    def __init__(
        self, audit_inputs: AuditInputs, recording: Path, growing: GrowingRecording
    ) -> None:
        self._inputs = audit_inputs
        self._recording = recording
        self._growing = growing
        self._pace = Pace()
        self._checked: CheckedRecording | None = None
        self._claims = dict[AttackKey, ClaimsOfThreat]()
        self._run: AuditedRun | None = None
        self._check: RecordingCheck | None = None
        self._rounds_checked = 0

    def attack_quickly(self) -> FollowedRound:
        """Run the attacks that are no slower than the rounds; return the latest claims of all.

        Raises:
            PlanError: if the plan does not fit the recording.
            TranscriptError: if the recording is damaged.

        """
        growing = self._growing
        self._pace.note_round(growing.rounds, monotonic())
        run, notes = self._open_run()
        self._run = run
        attacks, recording = self._attacks(), run.observed.recording
        # Also the slow ones, whose latest claims would be wrong.
        refused = [key for key in attacks if recording and recording.refusal(key[0])]
        for key in dict.fromkeys((*refused, *self._pace.quick(attacks))):
            self._attack(key, attacks[key])
        self._claims = {key: self._claims[key] for key in attacks if key in self._claims}
        return FollowedRound(
            growing.newest,
            growing.rounds,
            growing.seconds_since_newest(),
            self._audit(run),
            (*notes, *self._lost_replies(run), *self._slow_attacks(attacks)),
        )

    def attack_slowly(self) -> None:
        """Run one of the attacks that take longer than a round, if it has waited enough."""
        attacks = self._attacks()
        key = self._pace.slow(attacks, self._growing.rounds)
        if key is not None:
            self._attack(key, attacks[key])

    def _lost_replies(self, run: AuditedRun) -> Iterator[str]:
        """Describe the replies of the newest round that are missing or not recorded."""
        newest = self._growing.newest
        messages = (one for one in run.observed.transcript.messages if one.round == newest)
        return describe_lost_replies(find_lost_replies(messages))

    def _open_run(self) -> tuple[AuditedRun, tuple[str, ...]]:
        """Return the latest rounds as a run, and notes on how it is read and scored."""
        inputs, growing = self._inputs, self._growing
        if self._checked is None:
            self._checked = check_recording(inputs.plan, inputs, self._recording)
        whole, truth = growing.transcript(), None
        match = self._checked.match_model_tensors(whole)
        transcript = without_idle_updates(select_matched_tensors(whole, match))
        notes = match.notes
        try:
            truth = self._checked.read_truth(transcript, growing.parties)
        except TranscriptError as error:
            notes = (
                *notes,
                f"claims are not scored yet: {error}",
            )
        plan, waiting = self._plan_so_far()
        spec = self._checked.resolve(plan, transcript, growing.parties, goes_on=True)
        run = with_proof(
            self._checked.build_run(spec, whole, transcript, truth, growing.rounds),
            partial(self._prove, self._checked),
        )
        assert run.observed.recording is not None, "its messages were checked"
        return run, (*notes, *_recording_notes(run.observed.recording), *waiting)

    def _prove(self, checked: CheckedRecording) -> RecordingProof:
        """Check the rounds so far; each but the last, which may still change, is read once."""
        if self._check is None:
            self._check = RecordingCheck(checked.step)
        last = count_committed_rounds(self._recording) - 1
        for number in range(self._rounds_checked, last):
            self._check.add(read_round(self._recording, number))
        self._rounds_checked = max(self._rounds_checked, last)
        so_far = deepcopy(self._check)
        so_far.add(read_round(self._recording, last))
        return so_far.result()

    def _plan_so_far(self) -> tuple[Plan, tuple[str, ...]]:
        """Return the plan with the threats whose observers are there; say which are not yet."""
        plan, parties = self._inputs.plan, self._growing.parties
        ready, waiting = list[ThreatPlan](), list[str]()
        for threat in plan.threats:
            missing = {
                party
                for one in threat.in_run(tuple(parties))
                for party in one.observer_parties
                if party not in parties
            }
            if missing:
                waiting.append(
                    f"{', '.join(sorted(missing))} took no part yet: the threat with it waits"
                )
            else:
                ready.append(threat.model_copy(update={"by_round": False}))
        return plan.model_copy(update={"threats": tuple(ready)}), tuple(waiting)

    def _attacks(self) -> dict[AttackKey, AttackSpec]:
        """Return the attacks on the latest rounds."""
        assert self._run is not None, "a round was opened"
        attacks = self._run.observed.spec.attacks
        return {(one.cell.observers, one.cell.attack): one for one in attacks}

    def _attack(self, key: AttackKey, attack: AttackSpec) -> None:
        assert self._run is not None, "a round was opened"
        begin = monotonic()
        claims = claims_of_threat(self._run, (attack,), NoClaimStore(), Progress(None))
        self._claims[key] = replace(claims, cells=tuple(claims.cells))
        self._pace.note_attack(key, self._growing.rounds, monotonic() - begin)

    def _slow_attacks(self, attacks: Iterable[AttackKey]) -> Iterator[str]:
        """Describe the attacks that are not repeated at each round."""
        for key in attacks:
            between = self._pace.rounds_between(key)
            if between > 1:
                yield f"{key[1]} takes longer than a round: repeated every {between} rounds"

    def _audit(self, run: AuditedRun) -> Audit:
        """Return the latest claims of all attacks as those of an audit."""
        assert self._checked is not None, "a round was opened"
        plan, growing = self._inputs.plan, self._growing
        about = describe_recording(
            plan, self._checked.manifest, len(growing.parties), growing.rounds
        )
        rounds = run.observed.spec.rounds
        subject = recorded_subject(
            self._checked,
            run,
            f"{about}; the run goes on, and attacks saw its rounds {rounds[0]} to "
            f"{rounds[-1]} at most",
        )
        title = f"{plan.title} (the run goes on)"
        subject = replace(subject, plan=plan.model_copy(update={"title": title}))
        return judge(subject, [AttackedRun(run.record, tuple(self._claims.values()))])


def _recording_notes(recording: AuditedRecording) -> tuple[str, ...]:
    """Return what the check found so far, without residuals, which change at each round."""
    proof = recording.proof
    if proof is None:
        return (recording.failure,)
    if proof.reason in (Reason.NO_UPDATES, Reason.NO_NEXT_BROADCAST):
        return ()  # The next rounds will tell.
    return tuple(sentence for sentence in recording.sentences if sentence != proof.evidence)
