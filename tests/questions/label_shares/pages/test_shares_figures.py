"""Figures show clients one by one and state which ones they omit."""

from dataclasses import replace

import pytest

from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import client
from overheard.findings.audit import Audit
from overheard.findings.finding import ClaimRow
from overheard.questions.label_shares.pages.shares_figures import MAX_TARGETS, shares_figures
from tests.runs.audits import shares_finding


@pytest.mark.slow
def test_shows_the_most_different_of_many_clients_and_says_so(
    small: Audit,
) -> None:
    # Client n holds a share of n / 30 of the first class, mean 12.5 / 30: the two nearest to
    # it, 12 and 13, are left out.
    findings = tuple(
        shares_finding("none", client(n), (n / 30, 1 - n / 30), (0.5, 0.5)) for n in range(26)
    )
    (figure,) = shares_figures(
        with_verdicts(replace(small, findings=findings)).arm_results, ("cat", "dog")
    )
    assert len(figure.panels) == len(figure.table.rows) == MAX_TARGETS
    assert "24 of 26 clients" in figure.note
    assert "findings.csv" in figure.note
    headings = {panel.heading for panel in figure.panels}
    assert {f"client {n}" for n in range(26)} - headings == {"client 12", "client 13"}


def test_intervals_are_in_the_figure_and_in_its_table(small: Audit) -> None:
    findings = (shares_finding("none", client(0), (0.2, 0.8), (0.25, 0.75), reach=0.1),)
    (figure,) = shares_figures(
        with_verdicts(replace(small, findings=findings)).arm_results, ("cat", "dog")
    )
    assert figure.table.rows == (("client 0", "20 → 25 (15 to 35)", "80 → 75 (65 to 85)"),)
    assert figure.note.replace("\u00a0", " ").endswith("Line: its 90 % interval.")
    assert "(with 90" in figure.table.caption
    unbounded = replace(findings[0], claimed=ClaimRow(findings[0].claimed.numbers))
    (bare,) = shares_figures(
        with_verdicts(replace(small, findings=(unbounded,))).arm_results,
        ("cat", "dog"),
    )
    assert "interval" not in bare.note
    assert bare.panels[0].drawing != figure.panels[0].drawing


def test_the_table_gives_true_and_inferred_shares_in_percent(small: Audit) -> None:
    figure = shares_figures(small.arm_results, small.class_names)[0]
    assert figure.table.headers == ("Client", "cat", "dog")
    assert figure.table.rows[1] == ("client 1", "20 → 22", "80 → 78")
