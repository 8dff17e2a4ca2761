"""The first words of a claim, as examples for readers."""

from collections.abc import Iterable

from overheard.findings.finding import Finding
from overheard.findings.names import make_printable, name_target
from overheard.findings.number_format import NO_NUMBER
from overheard.findings.threat_results import ThreatResult

MOST_EXAMPLES = 5
"""Words that are given as examples."""


def example_sentences(threat_result: ThreatResult) -> tuple[str, ...]:
    """Return a sentence with the first words that are named correctly for one client.

    It is the client with most correct words among those listed. Words are only quoted if the
    claims of a threat reveal something.
    """
    findings = [
        finding
        for finding in threat_result.attack_results[0].findings
        if finding.candidates and sum(finding.true) > 0
    ]
    if threat_result.verdict != "leaks" or not findings:
        return ()
    best = max(findings, key=lambda finding: sum(finding.true))
    correct = [
        word for word, is_used in zip(best.candidates, best.true, strict=True) if is_used > 0
    ]
    return (
        f"For {name_target(best.target, threat_result.observers)}, {len(correct)} of the "
        f"{len(best.candidates)} words that the attack lists are used, such as "
        f"{_quote(correct[:MOST_EXAMPLES])}.",
    )


def first_words(finding: Finding) -> str:
    """Return the first words of a claim, in quotation marks; without any, a dash."""
    return _quote(finding.candidates[:MOST_EXAMPLES]) if finding.candidates else NO_NUMBER


def _quote(words: Iterable[str]) -> str:
    return ", ".join(f"“{make_printable(word)}”" for word in words)
