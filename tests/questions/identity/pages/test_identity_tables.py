"""Tables list every score of re-identification beside guesses and the control run."""

from overheard.auditing.threat_results import with_verdicts
from overheard.drawing.figures import ReportTable
from overheard.findings.finding import Finding
from overheard.questions.identity.pages.report import identity_tables
from tests.report.user_audits import (
    MLP,
    identity_findings,
    user_audit,
)


def tables(findings: list[Finding]) -> dict[str, ReportTable]:
    all_tables = identity_tables(with_verdicts(user_audit(findings, {"none": 0.8})).arm_results)
    assert all(len(line) == len(table.headers) for table in all_tables for line in table.rows)
    return {table.caption.partition(" (")[0]: table for table in all_tables}


def test_an_attack_has_a_row_in_each_table_whose_scores_it_has() -> None:
    by_title = tables(
        [
            *identity_findings("none", "ours", 4.0),
            *identity_findings("none", "mlp", 1.5, part=MLP, says_unseen=False),
        ]
    )
    assert {title: [line[1] for line in table.rows] for title, table in by_title.items()} == {
        "Re-identification": ["ours", "mlp"],
        "Pair matching": ["ours", "mlp"],
        "Users unknown to the attacker": ["ours", "mlp"],
        "Control run: examples reassigned at random among all clients": ["ours", "mlp"],
        "Gain over the published attack, paired by user": ["ours"],
    }
    (gain,) = by_title["Gain over the published attack, paired by user"].rows
    assert gain[2] == "mlp"
