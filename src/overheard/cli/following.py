"""Follows a recording while its run goes on: a line for each round, and a fresh report."""

from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import final

from rich.console import Console

from overheard.auditing.following.follow import FollowEvents, FollowSettings, follow_recording
from overheard.auditing.following.round_attacker import FollowedRound
from overheard.auditing.inputs import Resources
from overheard.cli.terminal import escaped_text
from overheard.core.accounting.accountant import format_epsilon
from overheard.core.errors import PlanError
from overheard.findings.finding import ArmDefense, targets_of
from overheard.findings.names import (
    make_printable,
    name_observers,
    name_other_clients,
    shorten,
)
from overheard.findings.threat_results import ThreatResult
from overheard.plans.plan import Plan
from overheard.report.page_registry import pages_of
from overheard.report.refusals import why_refused
from overheard.report.verdict_sentences import guess_words
from overheard.report.write import write_interim_report

LONGEST_REASON = 160
"""Most characters of why attacks could not run; the report has all of it."""


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


def describe_round(followed: FollowedRound) -> str:
    """Return the round, what each threat claims about whom, and the epsilon spent so far."""
    audit = followed.audit
    parts = [
        _threat_words(one, audit.class_names)
        for arm in audit.arm_results
        for one in arm.threat_results
    ]
    parts += [
        words
        for run in audit.arms
        for defense in run.defenses
        if (words := _epsilon_words(defense))
    ]
    states = "; ".join(parts) or "nothing was claimed"
    line = f"round {followed.number}, {followed.delay:.1f} s after its end: {states}"
    return line.replace("\N{NO-BREAK SPACE}", " ")


def _threat_words(threat_result: ThreatResult, classes: Sequence[str]) -> str:
    """Return what a threat claims: with its score and a guess, or with an unchecked example."""
    pages = pages_of(threat_result.question)
    question = make_printable(threat_result.question).replace("_", " ")
    subject = f"{name_observers(threat_result.observers)}, {question}"
    if threat_result.attack_results:
        row = threat_result.attack_results[0].headline_row
        effect = pages.headline_statement(row, "").failure
        guess = guess_words(threat_result, pages) or "no guess to compare with"
        return f"{subject} of {_targets_words(threat_result, row.targets)}: {effect} ({guess})"
    if threat_result.unchecked_claims:
        count = len(targets_of(threat_result.unchecked_claims))
        example = pages.unchecked_example(threat_result, classes).removesuffix(".")
        more = f" ({example[0].lower()}{example[1:]})" if example else ""
        return (
            f"{subject} of {_targets_words(threat_result, count)}: claimed, not checked{more}"
        )
    if threat_result.attacks_run:
        return f"{subject}: attacks ran, but what they claim could not be scored"
    why = why_refused(threat_result.refusals, "missing").removesuffix(".")
    return f"{subject}: no attack could run ({shorten(why, LONGEST_REASON)})"


def _targets_words(threat_result: ThreatResult, targets: int) -> str:
    if threat_result.target_kind == "cohort":
        return name_other_clients(threat_result.observers)
    return f"{targets} client{'' if targets == 1 else 's'}"


def _epsilon_words(defense: ArmDefense) -> str:
    """Return the epsilon that a defense has spent so far; "" if it adds no noise."""
    accounted = defense.accounted
    if accounted is None:
        return ""
    name, mechanism = make_printable(defense.settings.partition("(")[0]), accounted.mechanism
    if mechanism.flaw:
        return f"{name}: no guarantee, {make_printable(mechanism.flaw)}"
    if accounted.recomputed is None:
        return f"{name}: epsilon not recomputed, {make_printable(accounted.doubt)}"
    promise = ""
    if mechanism.stated is not None:
        scope = " a round" if mechanism.stated_for == "round" else ""
        promise = f" ({mechanism.stated:g}{scope} promised)"
    spent = format_epsilon(accounted.recomputed.against_everybody)
    return f"{name}: epsilon {spent} spent{promise}"
