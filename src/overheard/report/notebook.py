"""The verdicts of an audit as a table in a notebook."""

from overheard.auditing.threat_results import collect_arms
from overheard.core.seeds import Seed
from overheard.findings.finding import MAX_TABLE_LINES, Audit
from overheard.findings.html import html_table
from overheard.findings.names import make_printable
from overheard.findings.number_format import NO_NUMBER, SPACE, format_number
from overheard.findings.threat_results import ArmResult, ThreatResult
from overheard.report.page_registry import pages_of
from overheard.report.verdict_sentences import badge, false_leak_sentences, margin_text
from overheard.statistics.judgement import VERDICT_LEVEL

BOOTSTRAP_SEED = Seed(0)
"""Seed of intervals and pairings, as in the report that the command writes."""

HEADS = ("arm", "question", "verdict", "p", "gain", f"95{SPACE}% interval", "margin")


def verdict_table(audit: Audit) -> str:
    """Return the verdict on each question as HTML, in the words of the report.

    There is a line for each arm, group of observers and question. Below the table are the
    reasons why some verdicts cannot be given, and how many false leaks to expect.
    """
    arm_results = collect_arms(audit, BOOTSTRAP_SEED)
    lines = [
        _line(arm, threat_result) for arm in arm_results for threat_result in arm.threat_results
    ]
    more = len(lines) - MAX_TABLE_LINES
    notes = [
        f"p is that of a test of the claims against other targets; a leak needs "
        f"{VERDICT_LEVEL:g} or less. The gain is that of the strongest attack over guessing.",
        *_reasons(arm_results),
        *false_leak_sentences(arm_results),
        *([f"{more} more verdicts are in the report."] if more > 0 else []),
    ]
    return html_table(audit.title, HEADS, lines[:MAX_TABLE_LINES], " ".join(notes))


def _line(arm: ArmResult, threat_result: ThreatResult) -> tuple[str, ...]:
    judgement, pages = threat_result.judgement, pages_of(threat_result.question)
    gain, mean, interval = judgement.gain, NO_NUMBER, NO_NUMBER
    if gain is not None:
        measure = pages.question.measure(threat_result.attack_results[0].headline)
        mean, interval = measure.format(gain.mean), measure.format_gain_interval(gain)
    return (
        arm.name,
        threat_result.title,
        badge(judgement),
        format_number(judgement.p_value),
        mean,
        interval,
        margin_text(judgement, pages),
    )


def _reasons(arm_results: tuple[ArmResult, ...]) -> list[str]:
    """Return each reason for "not enough to judge" once."""
    reasons = dict.fromkeys(
        threat_result.judgement.why
        for arm in arm_results
        for threat_result in arm.threat_results
        if threat_result.judgement.why
    )
    return [f"Not enough to judge: {make_printable(reason)}." for reason in reasons]
