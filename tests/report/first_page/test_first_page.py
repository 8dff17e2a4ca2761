"""The first page: what identifies an audit, its words, and what was not tested."""

from dataclasses import replace

from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import COHORT, NETWORK, RELEASE, SERVER, client, late_joiner
from overheard.epsilon.epsilon_results import epsilon_results
from overheard.findings.audit import Audit
from overheard.findings.finding import Cell, Refusal
from overheard.findings.metadata import MetadataItem
from overheard.plans.registries import questions
from overheard.report.evidence.standards import untested_threats
from overheard.report.first_page.first_page import (
    MISTRUST,
    FirstPage,
    legend_sentences,
    make_first_page,
    untested_sentences,
)
from overheard.report.page_parts import PageParts
from tests.auditing.epsilon_audits import LOCAL, audit_of, noisy_finding
from tests.golden.judgements import UNASKED
from tests.runs.audits import FITS_BEST, shares_finding


def page_of(audit: Audit, digest: str = "") -> FirstPage:
    return make_first_page(with_verdicts(audit), (), digest, PageParts())


def test_the_file_rows_hold_only_what_is_known(small: Audit) -> None:
    assert [name for name, _ in page_of(small).file_rows] == [
        "Title", "What was audited", "Attacks tried", "Defenses tried", "Seeds", "Versions"
    ]  # fmt: skip
    told = replace(small, made_on="2026-11-22", release={"contact": "dpo@example.org"})
    rows = dict(page_of(told, "ab12").file_rows)
    assert rows["Contact"] == "dpo@example.org"
    assert rows["Day of the audit"] == "2026-11-22"
    assert rows["SHA-256 of findings.json"] == "ab12"
    assert rows["Attacks tried"] == "label shares: decaf"
    assert rows["Defenses tried"] == "LocalDP"


def test_what_belongs_into_an_assessment_follows_from_the_results(small: Audit) -> None:
    told = " ".join(page_of(small).assessment)
    assert "State that this was a simulation." in told
    assert "nobody could check" not in told
    claimed = replace(small.findings[0], true=None, scores=())
    arm = replace(small.arms[0], has_truth=False)
    recorded = replace(small, arms=(arm,), findings=(claimed,), is_recorded=True)
    told = " ".join(page_of(recorded).assessment)
    assert "simulation" not in told
    assert "Enter what nobody could check as an open risk without a size" in told


def test_equal_metadata_of_all_arms_are_stated_once(small: Audit) -> None:
    sizes, names = MetadataItem("examples", "sizes"), MetadataItem("names", "names")
    arms = (
        replace(small.arms[0], in_clear=(sizes, names)),
        replace(small.arms[1], in_clear=(sizes,)),
    )
    assert page_of(replace(small, arms=arms)).in_clear == (
        ("Numbers of examples", ("sizes",)),
        ("Names of senders", ("none: names",)),
    )


def test_an_unknown_kind_of_metadata_keeps_its_name(small: Audit) -> None:
    arm = replace(small.arms[0], in_clear=(MetadataItem("smells", "\x1b"),))
    audit = replace(small, arms=(arm, small.arms[1]))
    assert page_of(audit).in_clear == (("smells", ("none: \\x1b",)),)


def test_a_claim_that_does_not_hold_comes_first_among_the_steps() -> None:
    # The run adds noise of 1.0; the mechanism states ten times as much, or just this.
    weak = replace(LOCAL, noise_multiplier=10.0)
    for mechanism, is_broken in ((weak, True), (LOCAL, False)):
        audit = audit_of(mechanism, noisy_finding(1.0), are_canaries=True)
        results = epsilon_results(audit)
        page = make_first_page(with_verdicts(audit), results, "", PageParts())
        assert len(page.epsilons) == 1
        assert bool(page.broken_claims) == is_broken
        assert (page.steps[:1] == (MISTRUST,)) == is_broken


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
    # Without a margin there is no tick of it below the bars.
    plain = judged(small, verdict="leaks", is_below_margin=False, margins={})
    assert "The margin is" not in plain


def test_a_guess_from_labels_is_explained_if_the_matrix_has_one(small: Audit) -> None:
    assert "from labels alone" in judged(small, shared_gains={"decaf": 0.1})
    # The matrix has the guess beside the best attack only.
    assert "from labels alone" not in judged(small, shared_gains={"another": 0.1})


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
