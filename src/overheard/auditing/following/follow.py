"""Audits a recording while it grows: the latest rounds again after each new one."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Annotated, ClassVar, Literal, final

from annotated_types import Ge, Gt
from pydantic import AllowInfNan, ConfigDict, Field, TypeAdapter, ValidationError

from overheard.archive.layout import count_committed_rounds
from overheard.auditing.folder import RECORDING_LINE, AuditFolder
from overheard.auditing.following.growing_recording import GrowingRecording
from overheard.auditing.following.round_attacker import FollowedRound, RoundAttacker
from overheard.auditing.inputs import Resources, load_inputs
from overheard.auditing.recording import digest_of_first_rounds
from overheard.auditing.run import folder_claim
from overheard.core.errors import OutputError, PlanError
from overheard.core.settings import Positive, Settings
from overheard.disk.folder_lock import lock_folder
from overheard.disk.reading import read_json_text
from overheard.disk.writing import write_bytes
from overheard.learning.precision import computing
from overheard.learning.threads import single_thread
from overheard.plans.plan import Plan


@final
@dataclass(frozen=True, slots=True)
class FollowSettings(Settings):
    """How a growing recording is followed.

    Args:
        most_rounds: the most rounds that attacks look at while the run goes on, the latest
            ones. Memory and time of a round grow with it.
        timeout: seconds without a new round after which the run counts as over.
        pause: seconds between two looks at the recording.

    """

    most_rounds: Positive = 10
    timeout: Annotated[float, Ge(0), AllowInfNan(True)] = 3600.0
    pause: Annotated[float, Gt(0)] = 0.5


@final
@dataclass(frozen=True, slots=True)
class FollowEvents:
    """What is called while a recording is followed.

    Args:
        on_wait: called once if nothing is recorded yet.
        on_round: called after each round that was attacked.

    """

    on_wait: Callable[[], None]
    on_round: Callable[[FollowedRound], None]


def follow_recording(
    plan: Plan,
    folder: Path,
    recording: Path,
    events: FollowEvents,
    *,
    resources: Resources | None = None,
    settings: FollowSettings | None = None,
) -> bool:
    """Attack the latest rounds of a recording after each new round, until the run ends.

    Results are reported and not stored, except for simulations, which later rounds and the
    final audit reuse. The folder then belongs to the audit of the recording as it is at the
    end; run `auditing.run.audit` to get the results over all rounds.

    Args:
        plan: what to audit; `by_round` of its threats counts in the final audit only.
        folder: the folder of the audit.
        recording: the folder of the recording, which need not exist yet.
        events: what to call.
        resources: where the data are, and the compute resources.
        settings: how to follow; None = the defaults.

    Returns:
        Whether the recording says that the run has ended; False = it has stopped growing.

    Raises:
        AuditError: a subclass that says what to change. A `PlanError` if nothing was recorded
            in time. An `OutputError` if another audit works in the folder.

    """
    settings, resources = settings or FollowSettings(), resources or Resources()
    home = AuditFolder(folder)
    check_followed_folder(home, folder_claim(plan, None), None)
    cache = home.tensor_cache(resources.simulation_cache)
    growing = GrowingRecording(recording, settings.most_rounds)
    attacker = RoundAttacker(load_inputs(plan, resources, cache), recording, growing)
    with lock_folder(folder), single_thread(), computing("float32"):
        news = _await_news(growing, settings, events.on_wait)
        if news == "round":
            begin_to_follow(home, folder_claim(plan, recording), recording)
        while news == "round":
            events.on_round(attacker.attack_quickly())
            attacker.attack_slowly()
            news = _await_news(growing, settings, events.on_wait)
        if not growing.rounds:
            raise PlanError(_describe_nothing(recording, news, settings))
        claim = folder_claim(plan, recording)
        check_followed_folder(home, claim, recording)
        home.replace_plan(claim)
    return news == "end"


_News = Literal["round", "end", "silence"]
"""A new round with updates; the end of the run; nothing for too long."""


def _await_news(
    growing: GrowingRecording, settings: FollowSettings, on_wait: Callable[[], None]
) -> _News:
    """Wait for a new round, the end of the run, or the end of the time to wait."""
    begin = monotonic()
    has_waited = growing.rounds > 0
    while True:
        # Asked first: what was committed before the end is then read below.
        has_ended = growing.has_ended()
        is_new = growing.read_new_rounds()
        if has_ended:
            return "end"
        if is_new:
            return "round"
        if monotonic() - begin > settings.timeout:
            return "silence"
        if not has_waited:
            has_waited = True
            on_wait()
        sleep(settings.pause)


def _describe_nothing(recording: Path, news: _News, settings: FollowSettings) -> str:
    """Describe that no round with updates was recorded."""
    if news == "end":
        return f"{recording}: the run ended without any update: check its log"
    return (
        f"{recording}: no update was recorded within {settings.timeout:g} seconds: check that "
        "the run records to this folder, or wait longer with --follow-timeout"
    )


@dataclass(frozen=True, slots=True)
class _FollowedRecording:
    """The first rounds of the recording that is followed; they do not change any more."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid")

    rounds: Annotated[int, Field(ge=0)]
    digest: str


_PARSER = TypeAdapter(_FollowedRecording)


def check_followed_folder(home: AuditFolder, claim: str, recording: Path | None) -> None:
    """Check that a folder is free, or belongs to this plan and recording; change nothing.

    The recording may have grown since the folder was used, and got a ground truth.

    Args:
        home: the folder.
        claim: the text that says to whom it belongs, see `auditing.run.folder_claim`.
        recording: the folder of the recording; None = it does not exist yet, so only the plan
            is compared.

    Raises:
        OutputError: if it belongs to another plan or recording, was purged, or holds other
            files.

    """
    home.refuse_purged()
    existing = home.plan_text()
    is_same_plan = existing is not None and _without_recording(existing) == _without_recording(
        claim
    )
    if not (is_same_plan and (recording is None or _is_followed(home, recording))):
        home.check_plan(claim)


def begin_to_follow(home: AuditFolder, claim: str, recording: Path) -> None:
    """Write to a folder that it belongs to this plan and to this growing recording.

    Raises:
        OutputError: as `check_followed_folder`, or if the folder cannot be written.

    """
    check_followed_folder(home, claim, recording)
    # The last round may be committed a second time, with more messages.
    rounds = max(0, count_committed_rounds(recording) - 1)
    first = _FollowedRecording(rounds, digest_of_first_rounds(recording, rounds))
    # First, so that a folder whose plan names an earlier state is always known to follow it.
    write_bytes(home.followed_path, _PARSER.dump_json(first) + b"\n", inside=home.path)
    home.replace_plan(claim)


def _is_followed(home: AuditFolder, recording: Path) -> bool:
    """Return whether the folder has followed this recording before."""
    try:
        stored = _PARSER.validate_json(read_json_text(home.followed_path, OutputError))
    except (OutputError, ValidationError):
        return False
    return (
        stored.rounds <= count_committed_rounds(recording)
        and digest_of_first_rounds(recording, stored.rounds) == stored.digest
    )


def _without_recording(claim: str) -> list[str]:
    """Return the lines of a claim without the one that names the state of the recording."""
    return [line for line in claim.splitlines() if not line.startswith(RECORDING_LINE)]
