"""The pages on linked updates report, tabulate and draw pairs."""

from overheard.auditing.threat_results import with_verdicts
from overheard.findings.threat_results import ArmResult
from overheard.report.threat_sentences import threat_sentences
from tests.report.user_audits import sender_findings, user_audit


def arms_of(strength: float) -> tuple[ArmResult, ...]:
    return with_verdicts(
        user_audit(sender_findings("none", "link", strength), {"none": 0.8})
    ).arm_results


def test_links_have_sentences_of_their_own() -> None:
    (arm,) = arms_of(3.0)
    words = " ".join(threat_sentences(arm.threat_results[0]))
    assert (
        "infers which updates come from the same sender with an average precision of" in words
    )
    assert "The equal error rate of its pair matching is" in words
    assert "There was no permutation control." in words
    assert "The interval is over the users of this one run, and says nothing of other" in words
