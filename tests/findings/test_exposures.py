"""Findings are gathered by who asked what, the best attack first."""

from dataclasses import replace

import pytest

from overheard.auditing.exposures import arms
from overheard.core.parties import COHORT, SERVER, client
from overheard.core.seeds import Seed
from overheard.findings.exposures import arms_asking, labels_across, reader_labels
from overheard.findings.finding import Audit, Cell, Finding, Refusal
from tests.worlds.audits import shares_finding

TRUE = (1.0, 0.0)


def test_an_attack_leaks_only_if_the_whole_interval_of_its_gain_lies_above_0(
    small: Audit,
) -> None:
    bare, noise = arms(small, Seed(0))
    # none: gains 0.8 and 0.56, all above 0; noise: the guess itself, gain 0 twice.
    assert bare.exposures[0].verdict == "leaks"
    assert noise.exposures[0].verdict == "silent"


def test_gains_on_both_sides_of_0_are_not_told_apart_from_guessing(small: Audit) -> None:
    # Guess 50 / 50: l1 = 1. Claims 70 / 30 and 30 / 70: l1 = 0.6 and 1.4, gains 0.4 and -0.4.
    findings = (
        shares_finding("none", client(0), TRUE, (0.7, 0.3)),
        shares_finding("none", client(1), TRUE, (0.3, 0.7)),
    )
    assert arms(replace(small, findings=findings), Seed(0))[0].exposures[0].verdict == "unclear"


def test_one_answer_cannot_be_judged(small: Audit) -> None:
    findings = (shares_finding("none", client(0), TRUE, (0.7, 0.3)),)
    assert (
        arms(replace(small, findings=findings), Seed(0))[0].exposures[0].verdict == "unjudged"
    )


def test_refusals_alone_are_not_measured_rather_than_silent(small: Audit) -> None:
    cell = Cell("none", 0, (SERVER,), "decaf", "Decaf()", "label_shares", (0, 1))
    refused = replace(small, findings=(), refusals=(Refusal(cell, client(0), ("updates",)),))
    exposure = arms(refused, Seed(0))[0].exposures[0]
    assert exposure.verdict == "unmeasured"
    assert len(exposure.refusals) == 1


def test_the_best_attack_over_most_rounds_comes_first(small: Audit) -> None:
    findings = (
        shares_finding("none", client(0), TRUE, (0.7, 0.3), attack="weak"),
        shares_finding("none", client(0), TRUE, (0.9, 0.1), attack="strong"),
        shares_finding("none", client(0), TRUE, (1.0, 0.0), attack="weak", rounds=(1,)),
    )
    cases = arms(replace(small, findings=findings), Seed(0))[0].exposures[0].cases
    assert [case.attack for case in cases] == ["strong", "weak"]
    # 2 * 0.3, not the 0 of the single round.
    assert cases[1].row.value.mean == pytest.approx(0.6)
    assert cases[1].by_round[1].value.mean == 0


def test_the_cohort_is_never_averaged_with_the_clients(small: Audit) -> None:
    findings = (*small.findings, shares_finding("none", COHORT, (0.6, 0.4), (0.6, 0.4)))
    about_clients, about_cohort = arms(replace(small, findings=findings), Seed(0))[0].exposures
    assert (about_clients.about, about_cohort.about) == ("clients", "cohort")
    assert about_clients.cases[0].row.targets == 2
    assert about_cohort.cases[0].row.targets == 1


def test_accuracy_is_that_of_the_last_round(small: Audit) -> None:
    assert [arm.accuracy for arm in arms(small, Seed(0))] == [0.91, 0.89]


def test_the_runs_of_an_arm_leave_its_controls_out(small: Audit) -> None:
    controls = tuple(replace(run, is_control=True, accuracy={1: 0.0}) for run in small.arms)
    beside = arms(replace(small, arms=(*small.arms, *controls)), Seed(0))
    assert [arm.accuracy for arm in beside] == [0.91, 0.89]
    assert [len(arm.runs) for arm in beside] == [1, 1]


def labelled(finding: Finding, label: str, *, is_adaptive: bool = False) -> Finding:
    return replace(finding, cell=replace(finding.cell, label=label, is_adaptive=is_adaptive))


def test_readers_see_labels_and_full_names_where_two_labels_are_the_same(small: Audit) -> None:
    bold, shy, other = (
        shares_finding("none", client(0), TRUE, (share, 1 - share), attack=name)
        for share, name in ((0.9, "a, bold"), (0.8, "a, shy"), (0.7, "b, long name"))
    )
    findings = (labelled(bold, "a"), labelled(shy, "a"), labelled(other, "b", is_adaptive=True))
    exposure = arms(replace(small, findings=findings), Seed(0))[0].exposures[0]
    assert [case.label for case in exposure.cases] == ["a, bold", "a, shy", "b"]
    assert [case.is_adaptive for case in exposure.cases] == [False, False, True]
    assert exposure.labels == {"a, bold": "a, bold", "a, shy": "a, shy", "b, long name": "b"}


def test_a_label_that_is_the_full_name_of_another_attack_is_not_used() -> None:
    cell = Cell("none", 0, (SERVER,), "a", "A()", "label_shares", (0,), label="x")
    other = replace(cell, attack="b", label="a")
    assert reader_labels((cell, other)) == {"a": "x", "b": "b"}


def test_over_several_arms_an_attack_bears_the_label_that_says_the_most(small: Audit) -> None:
    findings = tuple(
        labelled(shares_finding(arm, client(0), TRUE, (0.9, 0.1), attack="a, knowing"), label)
        for arm, label in (("none", "a"), ("noise", "a, adapting"))
    )
    exposures = [arm.exposures[0] for arm in arms(replace(small, findings=findings), Seed(0))]
    assert [one.cases[0].label for one in exposures] == ["a", "a, adapting"]
    assert labels_across(exposures) == {"a, knowing": "a, adapting"}


def test_refused_attacks_have_labels_too(small: Audit) -> None:
    cell = Cell("none", 0, (SERVER,), "a, knowing", "A()", "label_shares", (0,), label="a")
    refused = replace(small, findings=(), refusals=(Refusal(cell, client(0), ("updates",)),))
    assert arms(refused, Seed(0))[0].exposures[0].labels == {"a, knowing": "a"}


def test_arms_asking_keep_their_place_and_lose_other_questions(small: Audit) -> None:
    every = arms(small, Seed(0))
    assert arms_asking(every, "label_shares") == every
    assert [arm.exposures for arm in arms_asking(every, "nothing")] == [(), ()]
