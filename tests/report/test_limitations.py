"""A report states its limitations."""

from dataclasses import replace

from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import SERVER, client
from overheard.findings.audit import Audit
from overheard.findings.finding import Cell, Refusal
from overheard.report.first_page.first_page import limitation_sentences
from overheard.report.refusals import group_refusals

CELL = Cell("none", 0, (SERVER,), "melis", "Melis()", "label_shares", (0, 1))


def test_the_last_limitation_is_that_tests_prove_no_absence(small: Audit) -> None:
    assert limitation_sentences(small)[-1] == ("An audit cannot prove that there is no risk.")


def test_refusals_are_told(small: Audit) -> None:
    refused = replace(small, refusals=(Refusal(CELL, client(0), ("auxiliary examples",)),) * 3)
    assert limitation_sentences(with_verdicts(refused))[0].startswith(
        "Some attacks could not run"
    )


def test_names_single_seeds_missing_updates_and_unattacked_arms(small: Audit) -> None:
    late = replace(small.arms[1], arm="late", missing=1, answers=3)
    audit = replace(small, arms=(*small.arms, late))
    told = " ".join(limitation_sentences(with_verdicts(audit)))
    assert "one run per arm" in told
    assert "1 of 12 updates of clients are missing" in told  # 4 + 4 + 3 came, 1 did not
    assert "No attack ran on the arm late." in told


def test_refusals_with_the_same_reason_are_grouped(small: Audit) -> None:
    again = replace(CELL, rounds=(0,))
    refusals = (
        Refusal(CELL, client(0), ("auxiliary examples",)),
        Refusal(CELL, client(1), ("auxiliary examples",)),
        Refusal(again, client(1), ("auxiliary examples",)),
        Refusal(CELL, client(1), ("updates",)),
    )
    groups = group_refusals(
        with_verdicts(replace(small, findings=(), refusals=refusals)).arm_results
    )
    assert [(g.missing, g.targets, g.claims) for g in groups] == [
        (("auxiliary examples",), 2, 3),
        (("updates",), 1, 1),
    ]


def test_refusals_show_the_label_of_an_attack(small: Audit) -> None:
    cell = replace(CELL, attack="decaf, knowing the defenses", label="decaf")
    audit = replace(small, findings=(), refusals=(Refusal(cell, client(0), ("updates",)),))
    (group,) = group_refusals(with_verdicts(audit).arm_results)
    assert group.label == "decaf"
