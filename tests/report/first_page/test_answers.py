"""The first sentences say what leaks to whom, in which arms, and what is not known."""

from dataclasses import replace

from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import SERVER, client
from overheard.findings.audit import Audit
from overheard.findings.finding import Cell, Refusal
from overheard.findings.metadata import MetadataItem
from overheard.report.first_page.answers import NEW_NAMES, answer_sentences
from tests.runs.audits import FITS_BEST, FITS_LIKE_ANY, shares_finding, two_findings


def answers(audit: Audit) -> list[str]:
    found = answer_sentences(with_verdicts(audit))
    return [text.replace("\u00a0", " ") for text in found]


def test_a_leak_under_one_defense_only_is_told_apart(small: Audit) -> None:
    findings = (
        shares_finding("none", client(0), (1.0, 0.0), (0.7, 0.3), fits=FITS_LIKE_ANY),
        shares_finding("none", client(1), (1.0, 0.0), (0.3, 0.7), fits=FITS_LIKE_ANY),
        *two_findings("noise", (1.0, 0.0), (0.9, 0.1), fits=FITS_BEST),
    )
    told = answers(replace(small, findings=findings))
    assert told[0].startswith("Without defenses, not settled: The server, about each client")
    assert told[1] == "Under “noise” only, leaks: The server, about each client: label shares."


def test_unchecked_and_unmeasured_answers_promise_nothing(small: Audit) -> None:
    claimed = shares_finding("none", client(0), (0.5, 0.5), (0.9, 0.1))
    unchecked = replace(claimed, true=None, scores=())
    run = replace(small.arms[0], has_truth=False, are_defenses_known=False)
    recorded = replace(small, arms=(run,), findings=(unchecked,))
    (only,) = answers(recorded)
    assert only.startswith("In this run, attacks state something, but nobody could check")
    assert "neither a leak nor its absence" in only
    guessed = replace(unchecked, guesses={"uniform": (0.6, 0.4)})
    *_, example = answers(replace(recorded, findings=(guessed,), class_names=("no", "yes")))
    assert example == (
        "For example, the attack decaf states that 90.0 % of the data of client 0 are of class "
        "“no”. A guess that never sees the run says 60.0 %."
    )
    cell = Cell("none", 0, (SERVER,), "decaf", "Decaf()", "label_shares", (0, 1))
    refused = (Refusal(cell, client(0), ("an update",)),)
    (unmeasured,) = answers(replace(small, findings=(), refusals=refused))
    assert "No attack could run, which shows no protection." in unmeasured


def test_an_audit_without_runs_has_no_answer(small: Audit) -> None:
    assert answer_sentences(replace(small, arm_results=())) == ()


def test_a_histogram_of_labels_in_clear_comes_first(small: Audit) -> None:
    told = MetadataItem("labels", "counts is a histogram of labels, read by server\x1b")
    arms = tuple(replace(arm, in_clear=(told,)) for arm in small.arms)
    first, *_ = answers(replace(small, arms=arms))
    assert first == (
        "No attack is needed for label shares: counts is a histogram of labels, read by "
        "server\\x1b."
    )


def test_what_attackers_know_and_what_is_in_clear_come_last(small: Audit) -> None:
    plan = 'threats = [{knows = ["recipe"]}]\n[data.people]\nshare = 0.25'
    names = (MetadataItem("names", "read"), MetadataItem("smells", "read"))
    arms = tuple(replace(arm, in_clear=names) for arm in small.arms)
    *_, known, clear = answers(replace(small, arms=arms, plan=plan))
    assert known == (
        "The attackers were assumed to know: up to 25% of each user's examples; how clients "
        "train."
    )
    assert clear == (
        "Read without any attack, since it is sent in clear: names of senders and smells."
    )


def test_new_names_in_each_round_are_told(small: Audit) -> None:
    each_round = 'threats = [{pseudonyms = "round"}]'
    assert NEW_NAMES in answers(replace(small, plan=each_round))
    assert NEW_NAMES not in answers(small)
