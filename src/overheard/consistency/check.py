"""The check of a recording: whether its replies lead to its next broadcasts as stored."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from math import isclose
from pathlib import Path
from typing import final

from scipy.special import chdtri, gammaincinv

from overheard.algorithms.scaffold import Scaffold
from overheard.archive.excerpt import printable_excerpt
from overheard.archive.layout import count_committed_rounds, round_folder, transcript_folder
from overheard.archive.reader import read_round
from overheard.consistency.clusters import clusters_fault, count_models
from overheard.consistency.collector import EvidenceCollector
from overheard.consistency.evidence import Rounds, StepEvidence, Sum, add_sums
from overheard.consistency.fits import (
    SHARE_OF_ROUNDS,
    Candidate,
    are_apart,
    are_still,
    are_too_coarse,
    fit_mixed,
    fit_other_readings,
    fit_same_reading,
    fit_stated,
    mixed_senders,
)
from overheard.consistency.mean_replies import find_mean_replies
from overheard.consistency.message_faults import FaultFinder, list_rounds
from overheard.consistency.proof import (
    Fit,
    MessageFault,
    Reason,
    RecordingProof,
    ServerStep,
    describe_step,
)
from overheard.consistency.readings import (
    MIXED_CASES,
    OTHER_READINGS,
    STATED,
    MixedCase,
    ReadingCase,
)
from overheard.consistency.reasons import (
    find_other_reading,
    find_reason,
    follows_with_rounding,
)
from overheard.consistency.statement import StatedStep
from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.messages import Aggregate, Broadcast, Message, UnstoredMessage, Update
from overheard.core.parties import COHORT, Party, is_client

FALSE_ALARMS = 1e-5
"""Share of true readings whose noise would be found too small or too large by chance."""

NOISE_TOLERANCE = 0.01
"""Relative error of the square of a stated size of noise, beside its sampling error."""

CLEARLY_LIKELIER = 25.0
"""By how much the squares of the noise, in its variances, are smaller under a reading that is
clearly likelier: their difference is twice the logarithm of the ratio of the likelihoods."""


@final
@dataclass(frozen=True, slots=True)
class _Left:
    """What a reading leaves of the changes of some rounds.

    Args:
        square: the sum of its squares, each in variances of the stated noise.
        count: how many numbers were added.

    """

    square: float
    count: int

    @property
    def is_noise(self) -> bool:
        """Whether it is as large as the noise, within the sampling error."""
        low = 2 * float(gammaincinv(self.count / 2, FALSE_ALARMS / 2))
        high = float(chdtri(self.count, FALSE_ALARMS / 2))
        error = NOISE_TOLERANCE * self.count
        return bool(low - error <= self.square <= high + error)


@final
@dataclass(frozen=True, slots=True)
class ReadingWithNoise:
    """The likeliest reading that leaves noise of the stated size.

    Args:
        candidate: the reading.
        is_hidden: whether the noise hides it: another reading, or replies that have nothing to
            do with the changes of the model, would leave such noise about as likely.

    """

    candidate: Candidate
    is_hidden: bool


def find_reading_with_noise(rounds: Rounds, noise: float) -> ReadingWithNoise | None:
    """Return the likeliest reading that leaves noise of the stated size; None if none does.

    Nothing is fitted, so all numbers count. The reading as stored is taken unless another one
    is clearly likelier.

    Args:
        rounds: the products of all rounds.
        noise: standard deviation of the noise in the sum of the replies; it is divided by
            their number in the mean.

    """
    if not noise:
        return None
    lefts = [
        (case, [_weigh(each, _left_by(case), noise) for each in rounds])
        for case in (STATED, *OTHER_READINGS)
        if case.sign > 0  # the size of a gradient's step is not known
    ]
    found = [(case, left) for case, left in lefts if _leaves_noise(left)]
    if not found:
        return None
    best = found[0]
    for one in found[1:]:
        if _advantage(one[1], best[1]) > CLEARLY_LIKELIER:
            best = one
    still = [_weigh(each, {best[0].target: 1.0}, noise) for each in rounds]
    rivals = [still, *(left for case, left in found if case is not best[0])]
    is_hidden = any(_advantage(best[1], one) <= CLEARLY_LIKELIER for one in rivals)
    case = best[0]
    step = ServerStep("fed_avg", case.reading, case.base, case.saved, "equal")
    return ReadingWithNoise(Candidate(case, Fit(step, {}), follows=True), is_hidden)


def _leaves_noise(left: Sequence[_Left | None]) -> bool:
    """Return whether nine of ten rounds leave noise of the stated size, and these together."""
    known = [one for one in left if one is not None]
    fits = [one for one in known if one.is_noise]
    total = _Left(sum(one.square for one in fits), sum(one.count for one in fits))
    return bool(fits) and len(fits) >= SHARE_OF_ROUNDS * len(known) and total.is_noise


def _advantage(one: Sequence[_Left | None], other: Sequence[_Left | None]) -> float:
    """Return by how much less one reading leaves than the other, in the rounds of both."""
    pairs = zip(one, other, strict=True)
    return sum(right.square - left.square for left, right in pairs if left and right)


def _left_by(case: ReadingCase) -> Sum:
    """Return what a reading leaves of a change."""
    return add_sums(({case.target: 1.0}, 1.0), (case.mean_difference("equal"), -1.0))


def _weigh(one: StepEvidence, left: Sum, noise: float) -> _Left | None:
    """Return the size of what is left in a round; None if it cannot be tested."""
    if not one.has(left):
        return None
    square = one.square(one.fit, left) + one.square(one.test, left)
    return _Left(square / (noise / one.replies) ** 2, one.fit_count + one.count)


CLEARLY = 10.0
"""How many times the residual of another reading is smaller if the stored one is refuted."""

CLEARLY_WRONG = 0.05
"""A residual of the stored reading that refutes it in any case."""

SAME_NUMBER = 0.01
"""Largest relative difference of a fitted number and the stated one."""

KEPT_PROOFS = 8
"""Most proofs of stored recordings that a process keeps."""

WEAK_REASONS = frozenset({Reason.UNKNOWN_STEP, Reason.NOT_A_MEAN, Reason.NOISE})
"""Reasons that fit as well if a few replies are wrong."""

UNUSED_COUNTS = (
    "the server takes the mean of the replies with equal weights, whatever their examples"
)
UNUSED_COUNTS_MEND = "check that the numbers of examples are what they are taken for"

NEVER_MOVED = "the broadcasts of all rounds are the same, though the replies differ from them"
NEVER_MOVED_MEND = "check that each round has the global model of its own"


SOME_ABSENT = "in some rounds not all clients of the recording have a reply"
SOME_ABSENT_MEND = "if the server used their replies, export or record these too"


@final
class RecordingCheck:
    """Checks a recording round by round, from a sample of at most 65,536 numbers of a model.

    In memory are the samples of the last five broadcasts, one float64 sum of the replies, and
    smaller samples of the replies of the first rounds.

    Args:
        statement: what the plan or the manifest states of the server's step.

    """

    def __init__(self, statement: StatedStep) -> None:
        self._statement = statement
        self._faults = FaultFinder()
        self._evidence = EvidenceCollector(statement, self._faults)
        self._senders = set[Party]()
        self._numbers_of_senders = Counter[int]()
        self._unseen_rounds = 0
        self._several_models = list[tuple[int, int]]()

    def add(self, round_messages: Sequence[Message]) -> None:
        """Add all messages of the next round; those of the last one may have no replies.

        Raises:
            TranscriptError: if a stored tensor is damaged.

        """
        replies = [one for one in round_messages if isinstance(one.body, Update | Aggregate)]
        self._senders.update(one.sender for one in replies)
        self._numbers_of_senders[len({one.sender for one in replies})] += 1
        self._unseen_rounds += bool(replies) and _has_unseen(round_messages)
        models = count_models(round_messages)
        if models > 1:
            self._several_models.append((round_messages[0].round, models))
        self._evidence.add(round_messages)

    def result(self) -> RecordingProof:
        """Return what the messages so far prove."""
        found = self._decide()
        is_sound = found.outcome == "follows" or (
            found.reason is not None and found.reason.supports_updates
        )
        fit = found.best or found.stated
        is_exact = is_sound and fit is not None and not fit.step.fitted
        clusters = clusters_fault(self._several_models)
        seen = (
            *(() if clusters is None else (clusters,)),
            *self._faults.faults(
                is_sound=is_sound,
                is_exact=is_exact,
                is_unknown=found.reason in WEAK_REASONS,
            ),
            *find_mean_replies(self._evidence.kept),
        )
        told = tuple(one for one in seen if not (found.otherwise and one.is_explained))
        found = replace(found, faults=(*told, *found.faults), accepted=self._statement.accept)
        refusal = next((one for one in seen if one.is_refusal), None)
        if refusal is None or (found.otherwise and refusal.is_explained):
            return found
        return replace(
            found,
            outcome="contradicts",
            reason=None,
            best=None,
            otherwise="",
            mend=refusal.mend,
            faults=(*seen, *found.faults[len(told) :]),
        )

    def _decide(self) -> RecordingProof:
        rounds, tracks = self._evidence.rounds, self._evidence.adaptive
        if not rounds:
            is_last = self._evidence.replied_rounds > 0
            return RecordingProof(
                "cannot tell", Reason.NO_NEXT_BROADCAST if is_last else Reason.NO_UPDATES
            )
        stated = fit_stated(rounds, self._statement.algorithm)
        if stated.follows or follows_with_rounding(rounds):
            return RecordingProof("follows", stated=stated.fit)
        noisy = find_reading_with_noise(rounds, self._statement.noise)
        if noisy is not None:
            return _judge_noise(stated, noisy)
        same = next((one for one in fit_same_reading(rounds, tracks) if one.follows), None)
        if same is not None:
            return self._find_mixed(stated, same) or self._follows_otherwise(stated, same)
        other = next(
            (
                one
                for one in fit_other_readings(rounds, tracks)
                if one.follows and _is_clear(stated, one)
            ),
            None,
        )
        if other is not None:
            return _contradiction(stated, other)
        return self._find_mixed(stated) or self._find_reason(stated)

    def _follows_otherwise(self, stated: Candidate, same: Candidate) -> RecordingProof:
        """Return that another server step follows, with what it says of what is stated."""
        algorithm, step = self._statement.algorithm, same.fit.step
        first = self._evidence.rounds[0].round
        warnings = list[MessageFault]()
        if step.mean == "equal" and not self._weights_alike():
            warnings.append(
                MessageFault(first, None, UNUSED_COUNTS, UNUSED_COUNTS_MEND, is_refusal=False)
            )
        if algorithm is not None and not _is_stated(step, algorithm):
            warnings.append(
                MessageFault(
                    first,
                    None,
                    f"the run states {printable_excerpt(repr(algorithm))}, but its "
                    f"broadcasts follow {describe_step(step)}",
                    "state the algorithm of the run",
                    is_refusal=False,
                )
            )
        return RecordingProof(
            "follows", stated=stated.fit, best=same.fit, faults=tuple(warnings)
        )

    def _weights_alike(self) -> bool:
        """Return whether the stated algorithm gives all replies the same weight."""
        return getattr(self._statement.algorithm, "mean", "examples") == "equal" or isinstance(
            self._statement.algorithm, Scaffold
        )

    def _find_mixed(
        self, stated: Candidate, same: Candidate | None = None
    ) -> RecordingProof | None:
        """Return the contradiction if some replies are to be read otherwise; None if not.

        Args:
            stated: the stated step.
            same: another server step that follows; None = there is none. Momentum leads to the
                same models as replies that began one round before. Then these must be clearly
                apart from the others.

        """
        momentum = None if same is None else same.fit.step.fitted.get("momentum")
        if same is not None and momentum is None:
            return None
        for case in MIXED_CASES:
            found = fit_mixed(case, self._evidence.rounds)
            if found is None or not found[0].follows or not _is_clear(stated, found[0]):
                continue
            candidate, numbers = found
            if momentum is not None and not are_apart(case, self._evidence.rounds, numbers):
                continue
            return replace(
                _contradiction(stated, candidate), faults=self._list_mixed(case, numbers)
            )
        return None

    def _list_mixed(self, case: MixedCase, numbers: dict[int, int]) -> tuple[MessageFault, ...]:
        """Return the replies that are to be read otherwise, one fault for each sender."""
        rounds = dict[Party, list[int]]()
        for one in self._evidence.rounds:
            for sender in mixed_senders(case, one, numbers[one.round]):
                rounds.setdefault(sender, []).append(one.round)
        return tuple(
            MessageFault(
                found[0],
                sender,
                f"{sender}: {case.description}, in {list_rounds(found)}",
                case.mend,
            )
            for sender, found in sorted(rounds.items())
        )

    def _find_reason(self, stated: Candidate) -> RecordingProof:
        rounds, kept = self._evidence.rounds, self._evidence.kept
        reason = find_reason(kept, rounds, has_unseen=self._has_unseen)
        if reason in {None, Reason.REPLIES_UNSEEN}:
            other = find_other_reading(kept, rounds, OTHER_READINGS)
            if other is not None and _is_clear(stated, other):
                return _contradiction(stated, other)
        faults = list[MessageFault]()
        if reason in {None, Reason.NOISE} and self._has_absent:
            faults.append(
                MessageFault(
                    rounds[0].round, None, SOME_ABSENT, SOME_ABSENT_MEND, is_refusal=False
                )
            )
        if reason in {None, Reason.NOISE} and are_too_coarse(rounds):
            reason = Reason.ROUNDING
        elif reason is None and are_still(rounds) and not self._faults.are_all_zero:
            faults.append(
                MessageFault(
                    rounds[0].round, None, NEVER_MOVED, NEVER_MOVED_MEND, is_refusal=False
                )
            )
        return RecordingProof(
            "cannot tell", reason or Reason.UNKNOWN_STEP, stated.fit, faults=tuple(faults)
        )

    @property
    def _has_absent(self) -> bool:
        """Whether clients of the recording have no reply in some rounds with replies."""
        whole = self._numbers_of_senders[len(self._senders)]
        return whole < self._evidence.replied_rounds

    @property
    def _has_unseen(self) -> bool:
        """Whether replies of other clients are known to be missing in the recording."""
        is_own = len(self._senders) == 1 and COHORT not in self._senders
        return is_own or self._unseen_rounds > 0


def check_recording(folder: Path, statement: StatedStep) -> RecordingProof:
    """Return what a stored recording proves; it is computed once for each state of its files.

    Nothing is kept on the disk: a recording that was received could vouch for itself.

    Args:
        folder: the folder of the run or of the transcript.
        statement: what the plan or the manifest states of the server's step.

    Raises:
        TranscriptError: if it is damaged.

    """
    transcript = transcript_folder(folder).resolve()
    return _check(transcript, statement, _digest(transcript))


@lru_cache(KEPT_PROOFS)
def _check(transcript: Path, statement: StatedStep, digest: str) -> RecordingProof:
    check = RecordingCheck(statement)
    for number in range(count_committed_rounds(transcript)):
        check.add(read_round(transcript, number))
    return check.result()


def _digest(transcript: Path) -> str:
    """Return a digest of the names, sizes and times of all files of a transcript."""
    found = blake2b(digest_size=20)
    for number in range(count_committed_rounds(transcript)):
        with os.scandir(round_folder(transcript, number)) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                state = entry.stat(follow_symlinks=False)
                times = f"{state.st_mtime_ns} {state.st_ctime_ns}"
                found.update(f"{number} {entry.name} {state.st_size} {times}\n".encode())
    return found.hexdigest()


def _judge_noise(stated: Candidate, noisy: ReadingWithNoise) -> RecordingProof:
    """Return what a reading that leaves noise of the stated size proves."""
    if noisy.candidate.case is not STATED:
        return _contradiction(stated, noisy.candidate)
    if noisy.is_hidden:
        return RecordingProof("cannot tell", Reason.HIDDEN_BY_NOISE, stated.fit)
    return RecordingProof("follows", stated=stated.fit)


def _contradiction(stated: Candidate, other: Candidate) -> RecordingProof:
    rate = other.fit.step.fitted.get("rate")
    is_linear = other.fit.step.algorithm in {"fed_avg", "fed_avg_m"}
    mend = other.case.mend
    if rate is not None and is_linear:
        mend = mend.replace("RATE", f"{rate:.6g}")
    elif "RATE" in mend:
        mend = f"{mend}, where RATE is the learning rate of the server"
    return RecordingProof(
        "contradicts", stated=stated.fit, best=other.fit, mend=mend, otherwise=other.case.words
    )


def _is_stated(step: ServerStep, algorithm: Algorithm) -> bool:
    """Return whether a step is that of the stated algorithm, with its numbers if it has any.

    Other weights of the mean are told apart from this. Buffers that hold one round, and clients
    that take equally many steps, lead to the mean, too.
    """
    if not step.fitted:
        return not algorithm.has_memory and getattr(algorithm, "rate", 1.0) == 1
    return step.algorithm == algorithm.name and all(
        isclose(number, getattr(algorithm, name, number), rel_tol=SAME_NUMBER)
        for name, number in step.fitted.items()
    )


def _is_clear(stated: Candidate, other: Candidate) -> bool:
    return other.residual * CLEARLY <= stated.residual or stated.residual >= CLEARLY_WRONG


def _has_unseen(messages: Sequence[Message]) -> bool:
    """Return whether a round lacks the reply of a client that is known to have been asked."""
    asked = {
        reader
        for one in messages
        if isinstance(one.body, Broadcast)
        for reader in one.readers
        if is_client(reader)
    }
    if any(isinstance(one.body, Aggregate) for one in messages):
        return False
    replied = {one.sender for one in messages if not isinstance(one.body, Broadcast)}
    lost = any(isinstance(one.body, UnstoredMessage) for one in messages)
    return lost or bool(asked - replied)
