"""What is claimed, recomputed and measured of epsilon stands side by side, with a verdict."""

import json
import sys
from dataclasses import replace

import pytest

from overheard.auditing.exposures import arms
from overheard.core.defense import Run
from overheard.core.parties import SERVER
from overheard.core.seeds import Seed
from overheard.defenses.dp_fedavg import DpFedavg
from overheard.epsilon.epsilon import epsilon_lines
from overheard.epsilon.table import HEADS, epsilon_table, epsilon_words
from overheard.findings.finding import Audit
from overheard.report.page import page
from overheard.report.tables import as_json
from tests.auditing.claiming import LOCAL, audit_of, released
from tests.worlds.audits import HOSTILE

WEAK = replace(LOCAL, noise_multiplier=10.0)


def cells(told: Audit) -> dict[str, str]:
    """Those of the line towards the server."""
    lines = [line for line in epsilon_lines(told) if line.observers == (SERVER,)]
    (line,) = epsilon_table(lines).lines
    return dict(zip(HEADS, line, strict=True))


def test_the_three_figures_stand_side_by_side() -> None:
    told = cells(audit_of(replace(LOCAL, noise_multiplier=4.0, stated=9.0), released(4.0)))
    assert told["Claimed"] == "9"
    # mu = 2 / 4: the closed formula comes to 1.993, and Renyi divergences to more.
    assert told["Recomputed: PLD / RDP"].startswith("2.00 / 2.1")
    assert float(told["Measured: at least"]) <= 2.0
    assert told["Verdict"].startswith("holds as far as measured (peek, 250 records of clients")
    for part in (
        "multiplier 4",
        "added by the client",
        "clip 1",
        "enforced by the client",
        "all data of a client",
        "1 round,",
        "sampling rate 1",
        "delta 1e-05",
    ):
        assert part in told["Mechanism"]


def test_the_attack_that_proves_most_is_called_as_readers_see_it() -> None:
    told = audit_of(WEAK, released(1.0))
    findings = tuple(
        replace(one, cell=replace(one.cell, label="peeking twice")) for one in told.findings
    )
    assert "(peeking twice, " in cells(replace(told, findings=findings))["Verdict"]


def test_a_violation_is_said_in_the_table_in_a_sentence_and_in_the_document() -> None:
    told = audit_of(WEAK, released(1.0))
    assert cells(told)["Verdict"].startswith("violated: attacks prove more (peek")
    (sentence,) = epsilon_words(epsilon_lines(told))
    assert "does not hold towards the server: peek proves an epsilon of" in sentence
    assert "Privacy claims that do not hold" in page(told, arms(told, Seed(0)))
    line = json.loads(as_json(told, ()))["epsilon"][0]
    assert (line["verdict"], line["observers"], line["claimed"]) == (
        "violated", ["server"], None,
    )  # fmt: skip
    assert line["measured"]["at_least"] > line["ceiling"]
    assert line["is_recomputed"]
    assert line["pld"] <= line["rdp"]


def test_what_holds_raises_no_alarm() -> None:
    told = audit_of(WEAK, released(10.0))
    assert epsilon_words(epsilon_lines(told)) == ()
    assert "Privacy claims that do not hold" not in page(told, arms(told, Seed(0)))


def test_a_claim_below_what_the_noise_comes_to_is_told_with_both() -> None:
    (sentence,) = epsilon_words(epsilon_lines(audit_of(replace(WEAK, stated=0.1)))[:1])
    assert "epsilon 0.1 is claimed, 0.7" in sentence


def test_so_little_noise_that_nobody_is_protected_is_said_to_be_so() -> None:
    idle = replace(LOCAL, noise_multiplier=0.01)
    told = cells(audit_of(idle, released(0.01, outsiders=200)))
    assert told["Verdict"].startswith("holds as far as measured, and protects nobody (")
    assert told["Recomputed: PLD / RDP"] == "> 1000 / > 1000"


@pytest.mark.slow
def test_who_reads_what_has_no_noise_yet_is_told_that_nothing_is_promised() -> None:
    told = cells(audit_of(DpFedavg().mechanism()))
    assert told["Verdict"].startswith("promises nothing to this observer")
    assert "added by the server" in told["Mechanism"]


@pytest.mark.slow
def test_noise_for_a_sensitivity_that_nobody_enforces_promises_nothing() -> None:
    told = cells(audit_of(replace(LOCAL, bounded_at=None)))
    assert told["Verdict"] == (
        "promises nothing: its noise is calibrated to a sensitivity that nobody enforces"
    )
    assert "enforced by nobody" in told["Mechanism"]


def test_what_was_not_asked_says_what_to_add() -> None:
    assert "add data.candidates" in cells(audit_of(WEAK))["Verdict"]
    assert "canaries" in cells(audit_of(WEAK, released(1.0), are_alike=False))["Verdict"]


@pytest.mark.slow
def test_a_draw_stands_beside_what_holds_without() -> None:
    drawn = audit_of(DpFedavg(1.0, 4.0).mechanism(), run=Run(20, 0.1, sampling_rate=0.1))
    # Of 2.24 see `sampled_epsilon`.
    assert cells(drawn)["Recomputed: PLD / RDP"].endswith("; drawn: 2.25")
    assert "sampling rate 0.1" in cells(drawn)["Mechanism"]


def test_without_an_accountant_the_line_to_install_it_stands_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    told = cells(audit_of(WEAK, released(1.0)))
    assert told["Verdict"].startswith("not recomputed: ")
    assert "pip install 'overheard[dp]'" in told["Verdict"]
    assert told["Recomputed: PLD / RDP"] == "–"


def test_names_from_outside_are_escaped() -> None:
    told = audit_of(
        replace(WEAK, unproven=HOSTILE), released(1.0), settings=f"{HOSTILE}\u202e(clip=1.0)"
    )
    violated = audit_of(WEAK, released(1.0, attack=HOSTILE), settings=HOSTILE)
    for one in (told, violated):
        html = page(one, arms(one, Seed(0)))
        assert HOSTILE not in html
        assert "\u202e" not in html
        assert html.count("&lt;script&gt;alert(1)") > 1


def test_a_report_without_mechanisms_does_not_speak_of_epsilon(small: Audit) -> None:
    assert "Claimed against measured" not in page(small, arms(small, Seed(0)))
    assert json.loads(as_json(small, ()))["epsilon"] == []
