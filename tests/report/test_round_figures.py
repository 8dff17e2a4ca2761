"""Each round is in the chart and in the table."""

from dataclasses import replace

from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import client
from overheard.findings.audit import Audit
from overheard.report.round_figures import accuracy_figure, round_figures
from tests.runs.audits import shares_finding

TRUE = (1.0, 0.0)


def test_lists_single_rounds_and_all_rounds(small: Audit) -> None:
    findings = (
        shares_finding("none", client(0), TRUE, (0.9, 0.1)),
        shares_finding("none", client(0), TRUE, (0.8, 0.2), rounds=(1,)),
        shares_finding("none", client(0), TRUE, (0.7, 0.3), rounds=(0,)),
    )
    (report_figure,) = round_figures(
        with_verdicts(replace(small, findings=findings)).arm_results
    )
    told = [(line[2], line[3].replace("\u00a0", " ")) for line in report_figure.table.rows]
    # Half of l1 is what is misplaced.
    assert told == [("0", "30 %"), ("1", "20 %"), ("all 2", "10 %")]


def test_without_single_rounds_there_is_no_figure(small: Audit) -> None:
    assert round_figures(small.arm_results) == ()


def test_shows_accuracy_by_round_of_measured_arms(small: Audit) -> None:
    report_figure = accuracy_figure(small.arm_results)
    assert report_figure.table.headers == ("Round", "none", "noise")
    assert report_figure.table.rows[1] == ("1", "91.0\u00a0%", "89.0\u00a0%")
    untested = tuple(replace(run, accuracy={}) for run in small.arms)
    assert accuracy_figure(with_verdicts(replace(small, arms=untested)).arm_results) is None
