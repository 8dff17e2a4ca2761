"""The first page says what was not asked, what could not run and what is never tested."""

from dataclasses import replace

from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import COHORT, NETWORK, RELEASE, SERVER, client
from overheard.findings.audit import Audit
from overheard.findings.finding import Cell, Refusal
from overheard.plans.registries import questions
from overheard.report.evidence.standards import untested_threats
from overheard.report.first_page.first_page import untested_sentences
from tests.golden.judgements import UNASKED
from tests.runs.audits import FITS_BEST, shares_finding


def untested(audit: Audit) -> str:
    return "\n".join(untested_sentences(with_verdicts(audit)))


def test_questions_and_observers_that_were_not_asked_are_named(small: Audit) -> None:
    text = untested(small)
    (unasked,) = [line for line in text.splitlines() if line.startswith(UNASKED)]
    assert "whether a given record, such as a patient's, is among the training data" in unasked
    assert "the share of each class" not in unasked  # this was asked
    assert unasked.count("; ") == len(questions()) - 2
    assert "Observers not asked about: a client that takes part" in text
    assert len(untested_threats()) >= 5
    assert all(one.threat[1:] in text for one in untested_threats())


def test_observers_that_are_no_party_of_the_run_are_named_until_they_are_asked(
    small: Audit,
) -> None:
    assert "readers of the final model, the network." in untested(small)
    asked = tuple(
        shares_finding("none", COHORT, (0.2, 0.8), (0.2, 0.8), observers=one, fits=FITS_BEST)
        for one in ((RELEASE,), (NETWORK,))
    )
    text = untested(replace(small, findings=(*small.findings, *asked)))
    assert "readers of the final model" not in text
    # They are not clients that take part.
    assert "Observers not asked about: a client that takes part" in text


def test_auxiliary_examples_that_may_be_a_clients_own_are_pointed_out(small: Audit) -> None:
    assert "Attackers were given" not in untested(small)
    assert "Attackers were given" in untested(replace(small, is_auxiliary_separate=False))


def test_a_question_asked_about_the_server_alone_is_named(small: Audit) -> None:
    assert "Asked about" not in untested(small)
    other = shares_finding(
        "none", COHORT, (0.2, 0.8), (0.2, 0.8), observers=(client(0),), fits=FITS_BEST
    )
    assert "Asked about" not in untested(replace(small, findings=(*small.findings, other)))
    cell = Cell("none", 0, (SERVER,), "x", "X()", "membership", (0,))
    refused = (Refusal(cell, client(0), ("an update",)),)
    told = untested(replace(small, findings=(*small.findings, other), refusals=refused))
    assert (
        "Asked about the server only: whether a given record, such as a patient's, is among "
        "the training data."
    ) in told


def test_what_does_not_fit_of_the_data_comes_first(small: Audit) -> None:
    warning = "The order of the classes is assumed."
    assert untested(replace(small, data_warnings=(warning,))).startswith(warning)
    assert warning not in untested(small)
