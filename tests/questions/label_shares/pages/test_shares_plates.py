"""Clients are drawn one by one, and what is left out is said."""

from dataclasses import replace

import pytest

from overheard.auditing.exposures import arms
from overheard.core.parties import COHORT, client
from overheard.core.seeds import Seed
from overheard.findings.finding import Audit
from overheard.questions.label_shares.pages.shares_plates import DRAWN, shares_plates
from tests.worlds.audits import shares_finding


@pytest.mark.slow
def test_of_many_clients_the_most_different_are_drawn_and_the_rest_is_named(
    small: Audit,
) -> None:
    # Client n holds a share of n / 30 of the first class, mean 12.5 / 30: the two nearest to
    # it, 12 and 13, are left out.
    findings = tuple(
        shares_finding("none", client(n), (n / 30, 1 - n / 30), (0.5, 0.5)) for n in range(26)
    )
    (plate,) = shares_plates(arms(replace(small, findings=findings), Seed(0)), ("cat", "dog"))
    assert len(plate.panels) == len(plate.table.lines) == DRAWN
    assert "24 of 26 clients" in plate.note
    assert "findings.csv" in plate.note
    drawn = {panel.heading for panel in plate.panels}
    assert {f"client {n}" for n in range(26)} - drawn == {"client 12", "client 13"}


def test_of_several_runs_one_is_drawn_and_the_note_says_which(small: Audit) -> None:
    findings = tuple(
        shares_finding("none", client(0), (1.0, 0.0), (0.5, 0.5), seed=seed) for seed in (5, 3)
    )
    (plate,) = shares_plates(arms(replace(small, findings=findings), Seed(0)), ("cat", "dog"))
    assert "the run with seed 3, one of 2" in plate.note


def test_bounds_are_drawn_and_stand_in_the_table_beside_the_shares(small: Audit) -> None:
    findings = (shares_finding("none", client(0), (0.2, 0.8), (0.25, 0.75), reach=0.1),)
    (plate,) = shares_plates(arms(replace(small, findings=findings), Seed(0)), ("cat", "dog"))
    assert plate.table.lines == (("client 0", "20 → 25 (15 to 35)", "80 → 75 (65 to 85)"),)
    assert plate.note.replace("\u00a0", " ").endswith("Line: its 90 % interval.")
    assert "(bounds of the 90" in plate.table.caption
    (bare,) = shares_plates(
        arms(replace(small, findings=(replace(findings[0], low=None, high=None),)), Seed(0)),
        ("cat", "dog"),
    )
    assert "interval" not in bare.note
    assert bare.panels[0].drawing != plate.panels[0].drawing


def test_what_a_client_observes_of_the_rest_is_called_the_others(small: Audit) -> None:
    rest = shares_finding("none", COHORT, (1.0, 0.0), (0.9, 0.1), observers=(client(0),))
    (plate,) = shares_plates(arms(replace(small, findings=(rest,)), Seed(0)), ("cat", "dog"))
    assert plate.panels[0].heading == "the other clients together"


def test_the_table_gives_true_and_inferred_shares_in_percent(small: Audit) -> None:
    plate = shares_plates(arms(small, Seed(0)), small.class_names)[0]
    assert plate.table.heads == ("Client", "cat", "dog")
    assert plate.table.lines[1] == ("client 1", "20 → 22", "80 → 78")
