"""The legend explains the words that this report uses, and no others."""

from dataclasses import replace

from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import COHORT, NETWORK, RELEASE, client, late_joiner
from overheard.findings.audit import Audit
from overheard.report.first_page.first_page import legend_sentences
from tests.runs.audits import FITS_BEST, shares_finding


def legend(audit: Audit) -> str:
    return " ".join(legend_sentences(with_verdicts(audit).arm_results))


def test_observers_that_are_no_party_of_the_run_are_explained(small: Audit) -> None:
    findings = tuple(
        shares_finding(
            "none", COHORT, (0.2, 0.8), (0.2, 0.8), observers=observers, fits=FITS_BEST
        )
        for observers in ((RELEASE,), (late_joiner(3),), (client(0), NETWORK))
    )
    told = legend(replace(small, findings=findings))
    assert "A reader of the final model has that model and nothing else of the run." in told
    assert "A client that joins in round 3 reads the models from that round on" in told
    assert "The network sees who sends how many bytes to whom and when." in told
    assert "final model takes part" not in told
    assert "Client 0 takes part like the others" in told


def judged(audit: Audit, **judgement: object) -> str:
    """The legend if each result of the audit were judged so."""
    arms = with_verdicts(audit).arm_results
    return " ".join(
        legend_sentences(
            [
                replace(
                    arm,
                    threat_results=tuple(
                        replace(one, judgement=replace(one.judgement, **judgement))
                        for one in arm.threat_results
                    ),
                )
                for arm in arms
            ]
        )
    )


def test_the_margin_is_explained_wherever_the_matrix_names_it(small: Audit) -> None:
    assert "The margin is" in judged(small, verdict="nothing to read")
    below = judged(small, verdict="leaks", is_below_margin=True)
    assert "The margin is" in below
    # The badge is then "Leaks, below the margin".
    assert "Size unsure" not in below
    assert "The margin is" not in judged(small, verdict="leaks", is_below_margin=False)


def test_a_guess_from_labels_is_explained_if_the_matrix_has_one(small: Audit) -> None:
    assert "from labels alone" in judged(small, shared_gains={"decaf": 0.1})
    # The matrix has the guess beside the best attack only.
    assert "from labels alone" not in judged(small, shared_gains={"another": 0.1})
