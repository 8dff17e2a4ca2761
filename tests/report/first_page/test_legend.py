"""The legend explains the words that this report uses, and no others."""

from dataclasses import replace

from overheard.auditing.threat_results import collect_arms
from overheard.core.parties import COHORT, client
from overheard.core.seeds import Seed
from overheard.findings.finding import Audit
from overheard.report.first_page.legend import legend_sentences
from tests.runs.audits import FITS_BEST, shares_finding


def legend(audit: Audit) -> str:
    return " ".join(legend_sentences(collect_arms(audit, Seed(0))))


def test_words_of_leaks_and_of_arms_are_explained_where_they_are_used(small: Audit) -> None:
    told = legend(small)
    for words in ("Each column is an arm", "“Leaks”:", "“Size unsure”:", "The margin is"):
        assert words in told
    for words in ("The cohort is", "takes part like the others", "from labels alone"):
        assert words not in told


def test_a_report_without_results_explains_neither_leaks_nor_gains(small: Audit) -> None:
    assert legend(replace(small, arms=small.arms[:1], findings=())) == ""


def test_the_cohort_and_clients_who_observe_are_explained(small: Audit) -> None:
    finding = shares_finding(
        "none", COHORT, (0.2, 0.8), (0.2, 0.8), observers=(client(0),), fits=FITS_BEST
    )
    told = legend(replace(small, findings=(finding,)))
    assert "The cohort is all clients together." in told
    assert "Client 0 takes part like the others" in told
