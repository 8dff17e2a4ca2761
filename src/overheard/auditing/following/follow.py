"""Audits a recording while it grows: the latest rounds again after each new one."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Annotated, Literal, final

from annotated_types import Ge, Gt
from pydantic import AllowInfNan

from overheard.auditing.folder import AuditFolder
from overheard.auditing.following.followed_folder import begin_to_follow, check_followed_folder
from overheard.auditing.following.growing_recording import GrowingRecording
from overheard.auditing.following.round_attacker import FollowedRound, RoundAttacker
from overheard.auditing.inputs import Resources, load_inputs
from overheard.auditing.run import folder_claim
from overheard.core.errors import PlanError
from overheard.core.settings import Positive, Settings
from overheard.disk.folder_lock import lock_folder
from overheard.learning.threads import one_thread
from overheard.plans.plan import Plan
from overheard.plans.plugin_packages import plugin_packages


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
    home, packages = AuditFolder(folder), plugin_packages(plan)
    check_followed_folder(home, folder_claim(plan, packages, None), None)
    cache = home.tensor_cache(resources.simulation_cache)
    growing = GrowingRecording(recording, settings.most_rounds)
    attacker = RoundAttacker(load_inputs(plan, resources, cache), recording, growing)
    with lock_folder(folder), one_thread():
        news = _await_news(growing, settings, events.on_wait)
        if news == "round":
            begin_to_follow(home, folder_claim(plan, packages, recording), recording)
        while news == "round":
            events.on_round(attacker.attack_quickly())
            attacker.attack_slowly()
            news = _await_news(growing, settings, events.on_wait)
        if not growing.rounds:
            raise PlanError(_describe_nothing(recording, news, settings))
        claim = folder_claim(plan, packages, recording)
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
