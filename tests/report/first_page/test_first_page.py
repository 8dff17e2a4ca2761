"""The first page puts together what identifies an audit, and what is sent in clear."""

from dataclasses import replace

from overheard.auditing.threat_results import with_verdicts
from overheard.epsilon.epsilon_results import epsilon_results
from overheard.findings.audit import Audit
from overheard.findings.metadata import MetadataItem
from overheard.report.first_page.first_page import (
    MISTRUST,
    FirstPage,
    make_first_page,
)
from overheard.report.page_parts import PageParts
from tests.auditing.epsilon_audits import LOCAL, audit_of, noisy_finding


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
