"""Follows a recording while its run goes on: a line for each round, and a fresh report."""

from pathlib import Path
from time import monotonic
from typing import final

from rich.console import Console

from overheard.auditing.following.follow import FollowEvents, FollowSettings, follow_recording
from overheard.auditing.following.round_attacker import FollowedRound
from overheard.auditing.inputs import Resources
from overheard.cli.round_lines import describe_round
from overheard.cli.terminal import escaped_text
from overheard.core.errors import PlanError
from overheard.plans.plan import Plan
from overheard.report.write import write_interim_report

SECONDS_BETWEEN_REPORTS = 15.0
"""Fewest seconds between two versions of the report."""

SHARE_OF_TIME = 0.2
"""Most of the time that is used to write reports, as pages with many claims take long."""


def follow_and_print(
    plan: Plan,
    folder: Path,
    recording: Path | None,
    settings: FollowSettings,
    resources: Resources,
    *,
    quiet: bool = False,
) -> None:
    """Follow a recording until its run ends; the final audit is left to the caller.

    Raises:
        AuditError: as `follow_recording`, or if no recording is named.

    """
    if recording is None:
        raise PlanError(
            "--follow needs a recording: name the folder that the run is recorded to with "
            "--transcript"
        )

    console = Console(highlight=False, quiet=quiet)

    def say(text: str) -> None:
        # Without wrapping, so that one round is one line in a log.
        console.print(escaped_text(text), soft_wrap=True)

    reports = _InterimReports(folder)
    notes = set[str]()

    def on_round(followed: FollowedRound) -> None:
        say(describe_round(followed))
        for note in followed.notes:
            if note not in notes:
                notes.add(note)
                say(f"  {note}")
        if reports.write(followed):
            say(f"  the report so far: {reports.path}")

    events = FollowEvents(
        lambda: say(f"waiting for the first round of {recording} (Ctrl-C to stop)"), on_round
    )
    has_ended = follow_recording(
        plan, folder, recording, events, resources=resources, settings=settings
    )
    if has_ended:
        say("the run has ended: all of its rounds are audited now")
    else:
        say(
            f"no new round for {settings.timeout:g} s, so the run counts as over: all of its "
            "rounds are audited now; run the same command again if it goes on"
        )


@final
class _InterimReports:
    """Writes the report of an audit that goes on, now and then."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._next = 0.0
        self._is_first = True

    @property
    def path(self) -> Path:
        """The path of the report."""
        return self._folder / "report.html"

    def write(self, followed: FollowedRound) -> bool:
        """Write the report if the last one is old enough; return whether it is the first."""
        begin = monotonic()
        if begin < self._next:
            return False
        write_interim_report(followed.audit, self._folder)
        end = monotonic()
        self._next = end + max(SECONDS_BETWEEN_REPORTS, (end - begin) / SHARE_OF_TIME)
        is_first, self._is_first = self._is_first, False
        return is_first
