"""Badge, sentence, matrix, chart and gate agree, whatever was found."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import client
from overheard.findings.audit import Audit
from overheard.findings.finding import Finding
from overheard.findings.number_format import format_number
from overheard.gate.judged_threats import threat_verdicts
from overheard.gate.policy import VerdictRule
from overheard.report.arm_figures import arm_figures
from overheard.report.exports import findings_document
from overheard.report.first_page.matrix import make_matrices
from overheard.report.threat_sentences import threat_sentences
from tests.runs.audits import shares_finding

SHARES = st.floats(0.01, 0.99)

FITS = st.floats(-1.2, 0.2)
"""How well the claim fits; 199 other partitions fit by -1 to 0."""


ATTACKS = st.lists(
    st.tuples(FITS, st.lists(SHARES, min_size=3, max_size=3)), min_size=1, max_size=2
)
"""For each attack, how well its claims fit, and what it claims of three clients."""


def make_findings(
    trues: list[float], attacks: list[tuple[float, list[float]]]
) -> tuple[Finding, ...]:
    return tuple(
        shares_finding(
            "none",
            client(number),
            (true, 1 - true),
            (claimed, 1 - claimed),
            attack=name,
            fits=(fit, *np.linspace(-1, 0, 199)),
        )
        for name, (fit, claims) in zip(("one", "two"), attacks, strict=False)
        for number, (true, claimed) in enumerate(zip(trues, claims, strict=True))
    )


@pytest.mark.slow
@given(trues=st.lists(SHARES, min_size=3, max_size=3), attacks=ATTACKS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_all_say_the_same(
    small: Audit, trues: list[float], attacks: list[tuple[float, list[float]]]
) -> None:
    findings = make_findings(trues, attacks)
    audit = with_verdicts(replace(small, arms=small.arms[:1], findings=findings))
    arms = audit.arm_results
    (result,) = arms[0].threat_results
    leaks = result.verdict == "leaks"
    row = result.attack_results[0].headline_row
    assert row.best_uninformed is not None
    # Never "leaks" of what is no better than a guess.
    assert not leaks or row.value.mean < row.best_uninformed
    (cell,) = make_matrices(arms)[0].rows[0].cells
    sentence = threat_sentences(result)[0]
    assert cell.badge.startswith("Leaks") == leaks
    assert (" infers " in sentence) == leaks
    # One figure everywhere: of the score that is judged.
    (figure,) = arm_figures(arms)
    value = figure.table.rows[0][2]
    assert value == f"{format_number(50 * row.value.mean)}\u00a0%"
    assert f" {value} of the data" in sentence
    assert f" {value} of the data" in cell.effect
    document = findings_document(audit)
    rule = VerdictRule.model_validate({"name": "r"})
    (judged,) = threat_verdicts((rule,), document, "inconclusive")
    assert (judged.status == "fail") == leaks
