"""Audits as DataFrames; findings as one line or as a small, escaped table."""

import csv
from dataclasses import replace
from io import StringIO

import pandas

from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import client
from overheard.findings.audit import MAX_TABLE_LINES, Audit
from overheard.findings.finding import Finding
from overheard.report.exports import as_csv
from tests.report.shift_audits import SINCE, shift_audit, shift_findings
from tests.runs.audits import HOSTILE


def test_a_frame_has_the_rows_of_the_csv_with_unrounded_numbers(rich: Audit):
    frame = rich.to_frame()
    lines = list(csv.DictReader(StringIO(as_csv(rich))))
    assert list(frame.columns) == list(lines[0])
    assert len(frame) == len(lines)
    for name in ("arm", "target", "score", "better"):
        assert frame[name].tolist() == [line[name] for line in lines]
    assert frame["value"].tolist() == [float(line["value"]) for line in lines]
    assert frame["gain"].isna().tolist() == [line["gain"] == "" for line in lines]


def test_findings_without_scores_and_with_a_timeline_have_rows():
    planned, control = shift_findings("none", "trend", 0.0, has_alarm=False)
    frame = shift_audit([planned, control]).to_frame()
    assert frame["true_since"].tolist()[0] == SINCE
    last = frame.iloc[-1]
    assert bool(last["is_control"])
    assert pandas.isna(last["score"])
    assert pandas.isna(last["value"])
    assert last["uninformed guesses"] is None


def test_the_repr_of_a_finding_is_one_line_with_its_first_score(small: Audit):
    # shares of 0.2 and 0.8 claimed as 0.22 and 0.78; halves are 0.3 off each
    finding = small.findings[1]
    assert repr(finding) == "<Finding: decaf about client/1, l1 0.04, best guess 0.6>"
    assert repr(replace(finding, scores=())) == "<Finding: decaf about client/1, no score>"
    unchecked = replace(finding, scores=(), true=None)
    assert repr(unchecked) == "<Finding: decaf about client/1, not checked>"
    assert repr(small) == "<Audit 'Two clients': 2 runs, 4 findings, 0 refusals>"


def hostile(finding: Finding) -> Finding:
    cell = replace(finding.cell, attack=f"{HOSTILE}\x1b[2J\n", arm=HOSTILE)
    return replace(finding, cell=cell)


def test_escapes_markup_and_control_characters(small: Audit):
    finding = hostile(small.findings[0])
    audit = with_verdicts(replace(small, title=f"{HOSTILE}\x1b", findings=(finding,)))
    assert r"\x1b[2J\n" in repr(finding)
    for text in (repr(finding), repr(audit)):
        assert text.isprintable()
    for page in (finding._repr_html_(), audit._repr_html_()):
        assert "&lt;script&gt;" in page
        assert "<script" not in page
        assert "\x1b" not in page


def test_the_table_of_an_audit_has_the_mean_of_each_attack(small: Audit):
    page = small._repr_html_()
    # the claims' l1 is 0.2 and 0.04, that of the guess of halves 1.0 and 0.6
    assert (
        "<td>none</td><td>the server</td><td>decaf</td><td>l1</td><td>0.12</td><td>0.8</td>"
        "<td>2</td>"
    ) in page
    assert "2 runs, 4 findings, 0 refusals" in page


def test_the_table_of_an_audit_is_cut(small: Audit):
    one = small.findings[0]
    many = tuple(
        replace(one, targets=(client(0),), cell=replace(one.cell, attack=f"decaf {number}"))
        for number in range(MAX_TABLE_LINES + 7)
    )
    page = with_verdicts(replace(small, findings=many))._repr_html_()
    verdicts, means = page.split("</table>")[:2]
    assert verdicts.count("<tr>") == 2
    assert means.count("<tr>") == MAX_TABLE_LINES + 1
    assert "7 more lines" in page
