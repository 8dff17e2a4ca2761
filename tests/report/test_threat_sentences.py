"""The sentences agree with the results."""

from dataclasses import replace

from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import COHORT, RELEASE, client, late_joiner
from overheard.findings.audit import Audit
from overheard.findings.finding import Refusal
from overheard.report.page import render_page
from overheard.report.page_registry import pages_of
from overheard.report.threat_sentences import threat_sentences
from overheard.report.verdict_sentences import (
    RELATED,
    badge,
    badge_of,
    false_leak_sentences,
    guess_words,
)
from tests.runs.audits import FITS_BEST, FITS_LIKE_ANY, shares_finding, two_findings


def words(audit: Audit, arm: int = 0) -> list[str]:
    """The sentences about the first threat result of an arm, with plain spaces."""
    threat_result = with_verdicts(audit).arm_results[arm].threat_results[0]
    return [sentence.replace("\u00a0", " ") for sentence in threat_sentences(threat_result)]


def test_no_leak_above_the_margin_is_not_called_no_leak(small: Audit) -> None:
    told = words(small, arm=1)
    assert told[0].startswith(
        "The server gains less than the margin over guessing each client's label shares: the "
        "best attack is wrong about the class of 40 % of the data (95 % interval "
    )
    assert "by chance" in told[2]
    # The claims are the guess: gain 0. l1 counts misplaced data twice, so 0.1 is 5 %.
    assert told[4] == (
        "Gain of the strongest attack over guessing (data assigned to the wrong class): 0 %, "
        "95 % interval 0 to 0 %; the margin is 5.0 %."
    )


def almost_exact(small: Audit, fits: tuple[float, ...]) -> Audit:
    """Claims that misplace 1 % of the data, where a guess misplaces 40 %."""
    findings = two_findings("none", (0.9, 0.1), (0.89, 0.11), fits=fits)
    return replace(small, findings=findings)


def test_claims_that_are_almost_exact_are_not_just_inconclusive(small: Audit) -> None:
    # 6 of 199 others fit better: p = 7 / 200.
    audit = almost_exact(small, (0.0, *[1.0] * 6, *[-1.0] * 193))
    told = words(audit)[0]
    assert told.startswith(
        "The server reads each client's label shares almost exactly, but 2 clients cannot rule "
        "out chance (p = 0.035, needed 0.025); the best attack is wrong about the class of "
    )
    page = render_page(with_verdicts(audit))
    assert "Almost exact, but 2 clients cannot rule out chance (p = 0.035" in page
    assert "Attacks are almost right, but so few results cannot rule out chance" in page


def test_half_of_what_guessing_leaves_open_is_not_almost_exact(small: Audit) -> None:
    findings = two_findings(
        "none", (0.9, 0.1), (0.7, 0.3), fits=(0.0, *[1.0] * 6, *[-1.0] * 193)
    )
    told = words(replace(small, findings=findings))[0]
    assert told.startswith("The server was shown neither to learn each client's label shares")


def test_a_leak_below_the_margin_is_called_so(small: Audit) -> None:
    findings = two_findings("none", (0.7, 0.3), (0.51, 0.49), fits=FITS_BEST)
    (arm, _) = with_verdicts(replace(small, findings=findings)).arm_results
    # l1 is 0.38, that of the guess 0.4: a gain of 0.02 twice.
    assert badge_of(arm.threat_results[0].judgement) == "Leaks, below the margin"


def test_related_claims_that_err_more_than_a_guess_are_no_leak_but_said_to_be_related(
    small: Audit,
) -> None:
    findings = two_findings("none", (0.6, 0.4), (0.9, 0.1), fits=FITS_BEST)
    audit = replace(small, findings=findings)
    judgement = with_verdicts(audit).arm_results[0].threat_results[0].judgement
    # The gains of both claims are -0.4, without any spread: below the margin of 0.1.
    assert badge_of(judgement) == "No leak above the margin"
    told = words(audit)
    assert told[0].startswith(
        "The server gains less than the margin over guessing each client's label shares: the "
        "best attack is wrong about the class of 30 % of the data"
    )
    assert any(RELATED in sentence for sentence in told)
    assert not any(RELATED in sentence for sentence in words(small))


def test_too_few_targets_are_described_with_what_is_needed(small: Audit) -> None:
    findings = (
        shares_finding("none", client(0), (1.0, 0.0), (0.7, 0.3)),
        shares_finding("none", client(1), (0.0, 1.0), (0.3, 0.7)),
    )
    # Two clients in two orders.
    assert words(replace(small, findings=findings))[0].startswith(
        "The server cannot be judged on each client's label shares: with so few targets and "
        "runs, no p-value can be below 0.5; 0.025 is needed; the best attack is wrong about"
    )


def test_neither_a_leak_nor_none_is_inconclusive(small: Audit) -> None:
    # Guess 50 / 50: l1 = 1. Claims 70 / 30 and 30 / 70: l1 = 0.6 and 1.4, gains 0.4 and -0.4.
    findings = (
        shares_finding("none", client(0), (1.0, 0.0), (0.7, 0.3), fits=FITS_LIKE_ANY),
        shares_finding("none", client(1), (1.0, 0.0), (0.3, 0.7), fits=FITS_LIKE_ANY),
    )
    assert words(replace(small, findings=findings))[0].startswith(
        "The server was shown neither to learn each client's label shares nor to gain less "
        "than the margin: the best attack is wrong about"
    )


def test_the_published_claim_on_absent_classes_is_contradicted_where_it_fails(
    small: Audit,
) -> None:
    true = (1.0, 0.0)
    findings = tuple(
        shares_finding("none", client(number), true, true, null=(0.5, 1.0, exact))
        for number, exact in enumerate((1.0, 0.0))
    )
    assert words(replace(small, findings=findings))[3] == (
        "Of the classes that decaf claims to be absent, 50.0 % are absent. It finds 100.0 % of "
        "all absent classes, and exactly the right set for 50.0 % of clients. The published "
        "accuracy is 100 %; this audit does not reproduce it."
    )


def test_the_published_claim_is_left_alone_where_it_holds_and_for_other_attacks(
    small: Audit,
) -> None:
    true = (1.0, 0.0)
    exact = shares_finding("none", client(0), true, true, null=(1.0, 1.0, 1.0))
    other = shares_finding(
        "none", client(0), true, true, null=(0.0, 0.0, 0.0), part="bias_inversion"
    )
    for finding in (exact, other):
        assert "published" not in " ".join(words(replace(small, findings=(finding,))))


def test_the_cohort_is_not_called_a_client(small: Audit) -> None:
    findings = tuple(
        shares_finding("none", COHORT, (0.8, 0.2), (0.7, 0.3), seed=seed, fits=FITS_BEST)
        for seed in (0, 1)
    )
    told = words(replace(small, findings=findings))
    assert told[0].startswith(
        "The server infers the cohort's label shares, and assigns 10 % of the data"
    )
    assert not any("client" in sentence for sentence in told)


def test_an_observing_client_infers_the_other_clients(small: Audit) -> None:
    rest = tuple(
        shares_finding(
            "none",
            COHORT,
            (0.8, 0.2),
            (0.7, 0.3),
            seed=seed,
            observers=(client(4),),
            fits=FITS_BEST,
        )
        for seed in (0, 1)
    )
    told = words(replace(small, findings=rest))
    assert told[0].startswith(
        "Client 4 infers the other clients' label shares, and assigns 10 % of the data"
    )
    assert not any("cohort" in sentence for sentence in told)
    cell = replace(rest[0].cell, rounds=(0, 1))
    refused = replace(small, findings=(), refusals=(Refusal(cell, COHORT, ("news",)),))
    assert words(refused)[0].startswith("What client 4 can learn about the other clients was")


def test_how_many_false_leaks_are_expected_is_told(small: Audit) -> None:
    (expected,) = false_leak_sentences(small.arm_results)
    # Two verdicts: 2 * 0.025.
    assert expected == (
        "2 verdicts rest on a test. If nothing leaked anywhere, one of them in 20 such audits "
        "would say “leaks” by chance: each does so in at most 25 of 1,000 audits."
    )


def test_guessing_from_labels_alone_takes_the_place_of_a_blind_guess(small: Audit) -> None:
    (arm, _) = small.arm_results
    result = arm.threat_results[0]
    pages = pages_of(result.question)
    assert guess_words(result, pages).replace("\u00a0", " ") == "guessing: wrong about 40 %"
    # l1 of 0.8 less a gain of 0.2 is 0.6: 30 % of the data.
    shared = replace(result.judgement, shared_gains={"decaf": 0.2})
    told = guess_words(replace(result, judgement=shared), pages).replace("\u00a0", " ")
    assert told == "guessing from labels alone: wrong about 30 %"


def test_a_leak_whose_gain_may_be_nothing_is_of_unsure_size() -> None:
    for least, words_of in (
        (0.01, "Leaks"),
        (0.0, "Leaks, size unsure"),
        (None, "Leaks, size unsure"),
    ):
        assert badge("leaks", is_below_margin=False, least_gain=least) == words_of
    assert badge("leaks", is_below_margin=True, least_gain=None) == "Leaks, below the margin"
    assert badge("inconclusive", is_below_margin=False, least_gain=None) == "Inconclusive"


def test_external_observers_claim_from_what_they_saw(small: Audit) -> None:
    for observer, source in ((RELEASE, "this model alone"), (late_joiner(1), "1 round")):
        finding = shares_finding(
            "none", COHORT, (0.2, 0.8), (0.2, 0.8), observers=(observer,), fits=FITS_BEST
        )
        seen = replace(finding, sent_rounds=(1,))
        told = words(replace(small, findings=(seen,)))[0]
        assert told.endswith(f", from {source}.")
        assert "infers the cohort's label shares" in told
