"""The table of epsilon."""

import json
import re
import sys
from dataclasses import replace
from typing import get_args

import pytest

from overheard.auditing.threat_results import with_verdicts
from overheard.core.defense import RunParameters
from overheard.core.mechanism import Mechanism
from overheard.core.parties import SERVER
from overheard.defenses.dp_fedavg import DpFedavg
from overheard.defenses.dp_sgd import DpSgd
from overheard.epsilon.epsilon_results import epsilon_results
from overheard.epsilon.table import (
    COLUMN_NAMES,
    epsilon_sentences,
    epsilon_summaries,
    epsilon_table,
)
from overheard.findings.audit import Audit
from overheard.findings.privacy.epsilon_rows import EpsilonVerdict
from overheard.report.exports import as_json
from overheard.report.page import render_page
from tests.auditing.epsilon_audits import LOCAL, ONE_ROUND, audit_of, noisy_finding
from tests.runs.audits import HOSTILE

WEAK = replace(LOCAL, noise_multiplier=10.0)


def cells(audited: Audit) -> dict[str, str]:
    """Return the cells of the line for the server."""
    lines = [line for line in epsilon_results(audited) if line.observers == (SERVER,)]
    table = epsilon_table(lines)
    (line,) = table.rows
    assert table.headers[: table.text_columns] == ("Arm", "Mechanism", "Observers", "Verdict")
    return dict(zip(table.headers, line, strict=True))


def test_a_line_has_claimed_recomputed_and_measured_epsilon() -> None:
    audit = audit_of(replace(LOCAL, noise_multiplier=4.0, stated=9.0), noisy_finding(4.0))
    audited = cells(audit)
    assert audited["Claimed"] == "9"
    # mu = 2 / 4: the closed form is 1.993; Renyi divergences give more.
    assert audited["Recomputed: PLD / RDP"].startswith("2.00 / 2.1")
    (found, *_) = epsilon_results(audit)
    assert found.lower_bound is not None
    # Never more than is proven.
    shown = float(audited["Measured: lower bound"])
    assert 0.01 < shown <= found.lower_bound.epsilon < shown + 0.01
    assert audited["Verdict"].startswith(
        "claim holds for its settings; holds as far as measured (peek, 250 members"
    )
    for part in (
        "multiplier 4",
        "added by the client",
        "clip 1",
        "enforced by the client",
        "all data of a client, replaced by another",
        "1 round,",
        "no sampling of clients",
        "delta 1e-05",
    ):
        assert part in audited["Mechanism"]


@pytest.mark.slow
def test_a_violation_is_in_the_table_in_a_sentence_and_in_the_document() -> None:
    audited = audit_of(WEAK, noisy_finding(1.0), are_canaries=True)
    assert cells(audited)["Verdict"].startswith(
        "violated: attacks on canaries prove a larger epsilon (peek"
    )
    (sentence,) = epsilon_sentences(epsilon_results(audited))
    assert sentence.startswith(
        "The promise of differential privacy by LocalDp does not hold against the server: peek "
        "proves an epsilon of"
    )
    assert "Does not hold" in render_page(with_verdicts(audited))
    line = json.loads(as_json(audited))["epsilon"][0]
    assert (line["verdict"], line["observers"], line["claimed"]) == (
        "violated", ["server"], None,
    )  # fmt: skip
    assert line["measured"]["at_least"] > line["ceiling"]
    assert line["is_recomputed"]
    assert line["pld"] <= line["rdp"]


def test_without_canaries_a_larger_bound_makes_a_claim_doubtful() -> None:
    audited = audit_of(WEAK, noisy_finding(1.0))
    assert cells(audited)["Verdict"].startswith("contradicted if records are independent")
    (sentence,) = epsilon_sentences(epsilon_results(audited))
    assert "is doubtful against the server: if records are independent" in sentence
    assert "violat" not in sentence


def test_a_claim_that_holds_has_no_sentence() -> None:
    audited = audit_of(WEAK, noisy_finding(10.0))
    assert epsilon_sentences(epsilon_results(audited)) == ()
    assert "Does not hold" not in render_page(with_verdicts(audited))


def test_a_false_claim_is_reported_with_the_lower_bound() -> None:
    (sentence,) = epsilon_sentences(epsilon_results(audit_of(replace(WEAK, stated=0.1)))[:1])
    assert "epsilon 0.1 is promised, and with its settings no epsilon below 0.7" in sentence
    # It is a lower bound, and 0.73 an upper one.
    assert re.search(r"below 0\.7[012] can be true", sentence)


def test_each_verdict_has_its_words_and_says_if_the_claim_holds_for_its_settings() -> None:
    (found, *_) = epsilon_results(audit_of(replace(WEAK, stated=1.0), noisy_finding(10.0)))
    assert found.accounted.claim == "holds"
    lines = {one: replace(found, verdict=one) for one in get_args(EpsilonVerdict)}
    words = {
        one: row[COLUMN_NAMES.index("Verdict")]
        for one, row in zip(lines, epsilon_table([*lines.values()]).rows, strict=True)
    }
    assert len(set(words.values())) == len(lines)
    assert {one for one in lines if words[one].startswith("claim holds for its settings")} == {
        "holds", "not tested", "refused", "not exchangeable", "unchecked",
    }  # fmt: skip


def test_a_meaningless_epsilon_is_reported_as_such() -> None:
    idle = replace(LOCAL, noise_multiplier=0.01)
    audited = cells(audit_of(idle, noisy_finding(0.01, outsiders=200)))
    assert audited["Verdict"].startswith("holds as far as measured, but protects nobody (")
    assert audited["Recomputed: PLD / RDP"] == "> 1000 / > 1000"


@pytest.mark.slow
def test_epsilon_with_sampling_is_shown_besides() -> None:
    sampled = audit_of(
        DpFedavg(1.0, 4.0).mechanism(), run=RunParameters(20, 0.1, sampling_rate=0.1)
    )
    # For 2.24 see `fixed_size_epsilon`.
    recomputed = cells(sampled)["Recomputed: PLD / RDP"]
    assert re.fullmatch(r"11\.\d\d / 1\d\.\d\d; with sampling: 2\.25", recomputed)
    assert "a fixed number of clients sampled a round (rate 0.1)" in cells(sampled)["Mechanism"]


def test_without_the_accountant_the_table_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    audited = cells(audit_of(WEAK, noisy_finding(1.0)))
    assert audited["Verdict"].startswith("not recomputed: ")
    assert "pip install '.[dp]'" in audited["Verdict"]
    assert audited["Recomputed: PLD / RDP"] == "–"


def test_names_from_outside_are_escaped() -> None:
    audited = audit_of(
        replace(WEAK, unproven=HOSTILE),
        noisy_finding(1.0),
        settings=f"{HOSTILE}\u202e(clip=1.0)",
    )
    violated = audit_of(
        WEAK, noisy_finding(1.0, attack=HOSTILE), settings=HOSTILE, are_canaries=True
    )
    for one in (audited, violated):
        html = render_page(with_verdicts(one))
        assert HOSTILE not in html
        assert "\u202e" not in html
        assert html.count("&lt;script&gt;alert(1)") > 1


def test_a_report_without_mechanisms_has_no_section_on_epsilon(small: Audit) -> None:
    assert "Claimed and measured epsilon" not in render_page(small)
    assert json.loads(as_json(small))["epsilon"] == []


def test_each_mechanism_is_told_in_one_sentence_for_all_observers() -> None:
    results = epsilon_results(audit_of(WEAK, noisy_finding(1.0)))
    (told,) = epsilon_summaries(results)
    (shown, _) = (row[-2] for row in epsilon_table(results).rows)
    assert told == (
        "LocalDp: no epsilon is promised. Its settings give an epsilon of 0.73 for all data of "
        f"a client. Attacks show an epsilon of {shown} or more."
    )
    loud = replace(WEAK, noise_multiplier=0.1, stated=2.0)
    (told,) = epsilon_summaries(epsilon_results(audit_of(loud)))
    assert told.startswith("LocalDp: an epsilon of 2 is promised, for all data of a client.")
    assert told.endswith(
        ", which is no guarantee in practice. No attack of this audit could measure epsilon."
    )
    open_clip = epsilon_results(audit_of(replace(loud, bounded_at=None)))
    (sentence,) = epsilon_sentences(open_clip)
    assert "guarantees nobody anything: its noise suits updates whose" in sentence
    (told,) = epsilon_summaries(open_clip)
    assert "Its settings would give an epsilon of " in told
    assert "As they are, there is no guarantee at all: its noise suits updates whose" in told


def test_a_promise_for_a_round_stands_beside_the_epsilon_of_a_round() -> None:
    # mu = 2 / 10 gives 0.73 in one round, and more in nine.
    found = epsilon_results(
        audit_of(replace(WEAK, stated=0.5, stated_for="round"), run=RunParameters(9, 1.0))
    )
    (told,) = epsilon_summaries(found)
    assert told.startswith("LocalDp: an epsilon of 0.5 per round is promised")
    assert re.search(r"Its settings give an epsilon of 0\.7\d per round and 2\.\d\d for the "
                     "whole run", told)  # fmt: skip
    (broken,) = epsilon_sentences(found)
    assert "epsilon 0.5 per round is promised, and with its settings no epsilon below 0.7" in (
        broken
    )
    assert "per round can be true." in broken


def test_two_mechanisms_of_an_arm_are_both_told() -> None:
    audited = audit_of(replace(WEAK, stated=2.0))
    other = audit_of(replace(WEAK, stated=3.0), settings="LocalDp(clip=2.0)")
    both = (*audited.arms[1].defenses, *other.arms[1].defenses)
    # A defense without a mechanism has no epsilon.
    both = (*both, replace(both[0], settings="Clipping()", accounted=None))
    arms = (audited.arms[0], replace(audited.arms[1], defenses=both))
    told = " ".join(epsilon_summaries(epsilon_results(replace(audited, arms=arms))))
    assert "an epsilon of 2 is promised" in told
    assert "an epsilon of 3 is promised" in told


def test_sampling_is_not_told_to_protect_from_the_server() -> None:
    found = epsilon_results(audit_of(WEAK))[0]
    recomputed = found.accounted.recomputed
    assert recomputed is not None
    drawn = replace(recomputed, pld=8.0, rdp=8.5, subsampled=0.5)
    (told,) = epsilon_summaries(
        [replace(found, accounted=replace(found.accounted, recomputed=drawn))]
    )
    assert "give an epsilon of 8.00 (0.50 against a client that does not know who is" in told


def test_an_epsilon_without_meaning_is_told_in_words() -> None:
    idle = replace(LOCAL, noise_multiplier=0.01)
    (told,) = epsilon_summaries(epsilon_results(audit_of(idle)))
    assert (
        "of more than 1000 for all data of a client, which is no guarantee in practice" in told
    )
    (told,) = epsilon_summaries(epsilon_results(audit_of(DpSgd().mechanism().in_round(1))))
    assert re.search(r"Its settings give an epsilon of [\d.]+ for one record of a client", told)


def test_a_summary_says_of_which_rounds_the_epsilon_is_and_whether_the_promise_holds() -> None:
    # Replacing a client moves 2 clips of noise 4: 73.6 in 300 rounds, and 3.71 in 3.
    noisy = replace(LOCAL, noise_multiplier=4.0)
    few = RunParameters(300, 1.0, sampling="none", asked=3, recorded=3)
    (told,) = epsilon_summaries(epsilon_results(audit_of(noisy, run=few)))
    assert "an epsilon of 74 for the 300 planned rounds (3 of 300 rounds recorded)" in told
    assert "3 of 300 rounds recorded" in cells(audit_of(noisy, run=few))["Mechanism"]
    unsure = audit_of(replace(noisy, stated=4.0), run=few)
    (told,) = epsilon_summaries(epsilon_results(unsure))
    assert "The promise is not confirmed, and may be true: 3 of 300 rounds recorded" in told
    assert cells(unsure)["Verdict"].startswith("claim not confirmed, may be true: 3 of 300")
    assert epsilon_sentences(epsilon_results(unsure)) == ()
    (told,) = epsilon_summaries(epsilon_results(audit_of(replace(noisy, stated=80.0), run=few)))
    assert "so the promise holds if the settings are those in use" in told
    endless = RunParameters(3, 1.0, sampling="none", is_open=True)
    (told,) = epsilon_summaries(epsilon_results(audit_of(noisy, run=endless)))
    assert "for the 3 rounds so far, and more rounds may follow" in told
    assert cells(audit_of(noisy, run=endless))["Verdict"].startswith("no upper bound")


def test_a_claim_between_the_bounds_is_told_with_both() -> None:
    sampled = replace(
        LOCAL, noise_multiplier=1.0, moves=1.0, unit="record", steps=300, stated=1.04,
        record_sampling="poisson", record_rate=0.01,
    )  # fmt: skip
    verdict = cells(audit_of(sampled))["Verdict"]
    assert "between a lower and an upper bound of the true epsilon, 1.01 and 1.07" in verdict
    assert "Poisson sampling of records (rate 0.01)" in cells(audit_of(sampled))["Mechanism"]


@pytest.mark.parametrize(
    ("mechanism", "run", "words"),
    [
        (replace(LOCAL, unit="record"), ONE_ROUND, "sampling of records not stated"),
        (LOCAL, RunParameters(1, 0.5, sampling=None), "sampling of clients not stated"),
        (LOCAL, RunParameters(1, 0.5, 0.5, "poisson"), "sampling of clients not counted"),
        (replace(LOCAL, bounded_at=None), ONE_ROUND, "enforced by nobody"),
    ],
)
def test_settings_that_epsilon_does_not_count_on_are_told(
    mechanism: Mechanism, run: RunParameters, words: str
) -> None:
    assert words in cells(audit_of(mechanism, run=run))["Mechanism"]
