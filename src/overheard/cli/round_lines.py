"""One line on what attacks claim after a round of a growing recording."""

from collections.abc import Sequence

from overheard.auditing.following.round_attacker import FollowedRound
from overheard.core.accountant import format_epsilon
from overheard.core.mechanism import INSTALL_HINT
from overheard.findings.finding import ArmDefense
from overheard.findings.names import (
    make_printable,
    name_observers,
    name_other_clients,
    shorten,
)
from overheard.findings.threat_results import ThreatResult
from overheard.report.page_registry import pages_of
from overheard.report.refusals import list_missing
from overheard.report.verdict_sentences import guess_words

LONGEST_REASON = 160
"""Most characters of why attacks could not run; the report has all of it."""


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
        count = len({one.target for one in threat_result.unchecked_claims})
        example = pages.unchecked_example(threat_result, classes).removesuffix(".")
        more = f" ({example[0].lower()}{example[1:]})" if example else ""
        return (
            f"{subject} of {_targets_words(threat_result, count)}: claimed, not checked{more}"
        )
    missing = shorten(list_missing(threat_result.refusals), LONGEST_REASON)
    return f"{subject}: no attack could run (missing: {missing})"


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
        return f"{name}: {INSTALL_HINT}"
    promise = ""
    if mechanism.stated is not None:
        scope = " a round" if mechanism.stated_for == "round" else ""
        promise = f" ({mechanism.stated:g}{scope} promised)"
    return f"{name}: epsilon {format_epsilon(accounted.recomputed.pld)} spent{promise}"
