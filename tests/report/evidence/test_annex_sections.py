"""The sections of the annex: threats, tests, epsilon, results and terms."""

import pytest

from overheard.drawing.sections import SectionBlock
from overheard.findings.number_format import SPACE
from overheard.plans.registries import questions
from overheard.report.evidence.annex import EXPLAINED, terms_section
from overheard.report.evidence.annex_plan import PlannedThreat, read_threats
from overheard.report.evidence.annex_results import judged_row, result_sentence
from overheard.report.evidence.annex_section import AnnexSection, question_words
from overheard.report.terms import read_terms
from tests.gate.documents import bound, epsilon_row, estimate, run, summary_row, verdict_row
from tests.report.evidence.annexes import annex_of, read, section_of, text_of


def test_states_the_observers_and_their_knowledge() -> None:
    text = section_of(annex_of(), "Threat model")
    row = "The server and client 1 together | the other clients | labelled examples"
    assert row in text
    assert "a new word | new in each round" in text
    assert "deviate from the protocol were not tested" in text
    assert "attacks look stronger" not in text
    assert "Threat model" in section_of(annex_of(plan="[[threats]]\nknows = 7"), "Threat model")
    doubtful = section_of(annex_of(is_auxiliary_separate=False), "Threat model")
    assert "attacks look stronger than they are" in doubtful


def test_states_what_travels_in_clear() -> None:
    text = section_of(annex_of(), "Threat model")
    assert "Numbers of examples | 50 examples | bare" in text
    nothing = section_of(annex_of(arms=[run(in_clear=[]), run("noisy")]), "Threat model")
    assert "Nothing is sent besides weights." in nothing


def test_controls_are_no_arms_of_their_own() -> None:
    arms = [run(is_control=True, seed=7), run(), run("noisy")]
    text = section_of(annex_of(arms=arms), "Threat model")
    assert text.count("bare | none") == 1


def test_lists_tests_that_were_made_and_those_that_were_refused() -> None:
    text = section_of(annex_of(), "Tests")
    assert "lira; strong; early | bare | 4 | 2" in text
    assert "lira; other | a model | noisy" in text
    assert "This does not show protection" in text


def test_names_every_question_that_was_not_asked() -> None:
    text = section_of(annex_of(), "Tests")
    (line,) = [one for one in text.splitlines() if one.startswith("Questions that")]
    for name in questions():
        assert (question_words(name) in line) == (name != "membership")
    assert "Observers that were not asked about: a client that takes part; parties" in text


PLAN = """
[[threats]]
observers = ["server"]
attacks = ["lira", { kind = "loss_membership", x = 1 }, "decaf", "one of a plugin"]

[[threats]]
observers = ["client/0"]
attacks = ["gradient_membership"]
"""


def test_names_the_attacks_whose_claims_could_not_be_checked() -> None:
    verdicts = [verdict_row("unchecked", None, gain=None, attack="", smallest_p_value=None)]
    text = section_of(annex_of(verdicts=verdicts, summary=[], plan=PLAN), "Tests")
    assert "No attack ran whose claims could be checked." in text
    assert "Attacks that ran" not in text
    # `decaf` answers another question, and the other threat has other observers.
    assert " | lira; loss_membership; one of a plugin | bare" in text
    assert "Claims without a check" not in section_of(annex_of(), "Tests")


TITLE = "Differential privacy"


def test_states_all_three_epsilons() -> None:
    text = section_of(annex_of(), TITLE)
    assert "noisy: LocalDp(clip=1.0), for all data of a client, delta 1e-05" in text
    assert "The server | 1.5 | 2.00 | 0.50 or more | not refuted" in text


def test_a_bound_is_never_rounded_to_the_wrong_side() -> None:
    row = epsilon_row(is_recomputed=True, pld=2.001)
    row["measured"] = bound(0.509)
    text = section_of(annex_of(epsilon=[row]), TITLE)
    assert "2.01 | 0.50 or more" in text


def test_a_flaw_is_named_and_equal_rows_are_shown_once() -> None:
    text = section_of(annex_of(epsilon=[epsilon_row("flawed")] * 2), TITLE)
    assert text.count("guarantees nothing: it adds no noise") == 1


def test_no_mechanism_is_said() -> None:
    assert "No defense of this audit adds noise" in section_of(annex_of(epsilon=[]), TITLE)


FAULT = {
    "arm": "noisy",
    "id": "noise-repeats",
    "severity": "critical",
    "title": "the same noise in several rounds",
    "what": "9 of 9 pairs have the same noise.",
    "where": "LocalDp: client/7, round 1",
    "evidence": "left of it: 0.001",
    "mend": "Draw it anew.",
    "reference": "a page",
}


def test_faults_are_named_where_no_epsilon_is_known() -> None:
    text = section_of(annex_of(epsilon=[], doctor=[FAULT]), TITLE)
    assert "the same noise in several rounds" in text
    assert "No defense of this audit adds noise" in text


def test_observers_of_the_models_alone_are_named() -> None:
    text = section_of(annex_of(epsilon=[epsilon_row(observers=[])]), TITLE)
    assert "Whoever reads the global models" in text


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


def test_explains_what_occurs_and_nothing_else() -> None:
    sections = [AnnexSection("x", (SectionBlock("The Cohort", ("epsilon is 3",)),))]
    text = text_of(terms_section(sections))
    names = [line.split(" | ")[0] for line in text.splitlines() if " | " in line]
    assert names == ["Term", "Cohort", "Epsilon, delta"]


def test_a_plural_counts_and_a_part_of_a_word_does_not() -> None:
    block = SectionBlock("", ("Attacks on canaries, around the grounds, remembered.",))
    text = text_of(terms_section([AnnexSection("x", (block,))]))
    names = [line.split(" | ")[0] for line in text.splitlines() if " | " in line]
    assert names == ["Term", "Canary"]


def test_every_explained_term_is_one_of_the_glossary() -> None:
    assert {one.name for one in read_terms()} >= EXPLAINED


def test_reads_what_a_plan_says_of_a_threat() -> None:
    text = """
    [[threats]]
    observers = ["server"]
    about = "cohort"
    knows = ["auxiliary"]
    pseudonyms = "round"
    attacks = ["decaf", { kind = "amortised", steps = 9 }]
    """
    (threat,) = read_threats(text)
    known, attacks = ("labelled examples of the same task",), ("decaf", "amortised")
    assert threat == PlannedThreat(("server",), "cohort", known, attacks, has_new_names=True)


@pytest.mark.parametrize(
    "text", ["", "not TOML", "threats = 3", "threats = [1]", "[" * 5000, "threats = {a = 1}"]
)
def test_a_text_that_is_no_plan_has_no_threats(text: str) -> None:
    assert list(read_threats(text)) == []


def test_values_of_other_types_are_left_out() -> None:
    text = "[[threats]]\nobservers = [1, 'server']\nattacks = [{ kind = 3 }, 'a', [1]]"
    (threat,) = read_threats(text)
    assert (threat.observers, threat.attacks) == (("server",), ("a",))
