"""Results state verdict, effect, guess, gain with interval, margin and p-value."""

from overheard.findings.number_format import SPACE
from overheard.report.evidence.annex_results import judged_row, result_sentence
from tests.gate.documents import epsilon_row, estimate, run, summary_row, verdict_row
from tests.report.evidence.annexes import annex_of, read, section_of


def test_a_row_states_all_that_a_verdict_rests_on() -> None:
    text = section_of(annex_of(), "Results")
    (row,) = [line for line in text.splitlines() if line.startswith("bare. The server |")]
    # The strongest attack has an AUC of 0.75; a coin has 0.5. They are shown as "75 of 100".
    plain = row.replace(SPACE, " ")
    for part in (
        "Leaks",
        "75 of 100; guessing: 50 of 100",
        "25 of 100 (20 to 30 of 100)",
        "margin 5.0 of 100",
    ):
        assert part in plain, part
    assert "p = 0.001" in row


def test_the_judged_row_is_the_strongest_over_the_most_rounds() -> None:
    findings = read()
    row = judged_row(findings, findings.verdicts[0])
    assert row.attack == "strong"
    assert judged_row(findings, findings.verdicts[1]) is None


def test_the_best_guess_follows_the_direction_of_the_score() -> None:
    blinds = {"a": 0.2, "b": 0.4, "c": None}
    higher, lower = (
        read(summary=[summary_row(blinds=blinds, better=better)]).summary[0].best_guess
        for better in ("higher", "lower")
    )
    assert (higher, lower) == (0.4, 0.2)
    assert read(summary=[summary_row(blinds={})]).summary[0].best_guess is None


def test_a_guess_that_knows_the_labels_stands_beside_the_attack() -> None:
    verdict = verdict_row("leaks", score="membership_auc", gain=estimate(0.05, 0.1))
    informed = annex_of(verdicts=[verdict | {"shared_gains": {"strong": 0.175, "lira": 0.14}}])
    results = section_of(informed, "Results").replace(SPACE, " ")
    # A coin has 0.5; labels alone add 0.175.
    assert "75 of 100; guessing from labels alone: 68 of 100" in results
    assert "what the attack adds" in results
    assert "Gain over guessing from labels alone: " in section_of(informed, "In short")
    assert "labels alone" not in section_of(annex_of(), "Results")
    # What labels alone give does not make an attack the strongest: 0.25 - 0.175 < 0.15.
    other = annex_of(verdicts=[verdict | {"shared_gains": {"strong": 0.175}}])
    assert "65 of 100; guessing: 50 of 100" in section_of(other, "Results").replace(SPACE, " ")


def test_a_sentence_follows_the_arm_and_the_verdict() -> None:
    verdict = verdict_row("not enough to judge", None, sentence="There are too few clients.")
    sentence = result_sentence(read(verdicts=[verdict]).verdicts[0])
    assert sentence == "Arm “bare”: Not enough to judge. There are too few clients."


def test_the_summary_counts_every_verdict_once() -> None:
    verdicts = [
        verdict_row("inconclusive", 0.4, arm="a"),
        verdict_row("no leak above margin", 0.4, arm="b"),
        verdict_row("unchecked", None, arm="c"),
        verdict_row("leaks", arm="d"),
    ]
    text = section_of(annex_of(verdicts=verdicts, arms=[*map(run, "abcd")]), "In short")
    for part in ("Of 4 results, 1 say", "1 show that", "1 are open", "1 could not be"):
        assert part in text, part


def test_claims_of_privacy_that_do_not_hold_are_in_short() -> None:
    broken = epsilon_row(verdict="flawed", flaw="nobody enforces the clip")
    text = section_of(annex_of(epsilon=[broken]), "In short")
    assert "guarantees nothing: nobody enforces the clip." in text
    assert "do not hold or are doubtful" not in section_of(annex_of(), "In short")


def test_findings_without_verdicts_say_so() -> None:
    assert "The audit has no results." in section_of(annex_of(verdicts=[]), "In short")


def test_a_question_of_a_plugin_that_is_not_installed_has_bare_numbers() -> None:
    place = {"question": "odd_question", "attack": "guesser"}
    annex = annex_of(
        summary=[summary_row(score="odd", **place)],
        verdicts=[verdict_row(score="odd", margins={"odd": 0.1}, **place)],
    )
    text = section_of(annex, "Results")
    assert "odd: 0.55; guessing: 0.50" in text
    assert "odd question, about each client" in text
    assert "No identifier." in section_of(annex, "Standards by finding")
