"""Reports compare inferred attributes with guessing and with the control."""

from overheard.auditing.threat_results import with_verdicts
from overheard.findings.threat_results import ArmResult
from overheard.questions.attribute.pages.report import attribute_tables
from overheard.report.threat_sentences import threat_sentences
from tests.report.user_audits import attribute_findings, user_audit


def arms_of(strength: float) -> tuple[ArmResult, ...]:
    findings = attribute_findings("none", "age", strength)
    return with_verdicts(user_audit(findings, {"none": 0.8})).arm_results


def test_attributes_have_sentences_of_their_own() -> None:
    (arm,) = arms_of(3.0)
    words = " ".join(threat_sentences(arm.threat_results[0]))
    assert "infers the attribute of the user behind a target correctly in" in words
    assert "clients, the same score is" in words


def test_attributes_have_one_table_with_guess_and_control() -> None:
    (table,) = attribute_tables(arms_of(2.0))
    assert table.caption.startswith("Attributes of users")
    assert table.headers[2:5] == ("Correct attribute values", "Guessing", "In the control")
