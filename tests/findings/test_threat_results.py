"""Results of a threat."""

from dataclasses import replace

import pytest

from overheard.auditing.threat_results import with_verdicts
from overheard.core.messages import Message, MessageBody, MissingReply, UnstoredMessage, Update
from overheard.core.parties import COHORT, SERVER, client
from overheard.findings.audit import Audit
from overheard.findings.finding import Cell, Finding, Refusal
from overheard.findings.lost_replies import (
    LostReply,
    describe_lost_replies,
    doubt_by_lost_replies,
    find_lost_replies,
)
from overheard.findings.threat_results import attack_labels, labels_of_results, select_question
from tests.runs.audits import shares_finding

TRUE = (1.0, 0.0)


def test_an_arm_leaks_whose_claims_fit_no_other_partition(small: Audit) -> None:
    undefended, noise = small.arm_results
    assert undefended.threat_results[0].verdict == "leaks"
    # The claims are the guess itself: a gain of 0 twice, which is below 0.1.
    assert noise.threat_results[0].verdict == "no leak above margin"


def test_refusals_alone_count_as_unmeasured(small: Audit) -> None:
    cell = Cell("none", 0, (SERVER,), "decaf", "Decaf()", "label_shares", (0, 1))
    refused = replace(small, findings=(), refusals=(Refusal(cell, client(0), ("updates",)),))
    threat_result = with_verdicts(refused).arm_results[0].threat_results[0]
    assert threat_result.verdict == "unmeasured"
    assert len(threat_result.refusals) == 1


def test_the_best_attack_over_the_most_rounds_is_first(small: Audit) -> None:
    findings = (
        shares_finding("none", client(0), TRUE, (0.7, 0.3), attack="weak"),
        shares_finding("none", client(0), TRUE, (0.9, 0.1), attack="strong"),
        shares_finding("none", client(0), TRUE, (1.0, 0.0), attack="weak", rounds=(1,)),
    )
    attack_results = (
        with_verdicts(replace(small, findings=findings))
        .arm_results[0]
        .threat_results[0]
        .attack_results
    )
    assert [attack_result.attack for attack_result in attack_results] == ["strong", "weak"]
    # 2 * 0.3, not the 0 of the single round.
    assert attack_results[1].headline_row.value.mean == pytest.approx(0.6)
    assert attack_results[1].headline_by_round[1].value.mean == 0


def test_cohort_and_clients_have_separate_results(small: Audit) -> None:
    findings = (*small.findings, shares_finding("none", COHORT, (0.6, 0.4), (0.6, 0.4)))
    about_clients, about_cohort = (
        with_verdicts(replace(small, findings=findings)).arm_results[0].threat_results
    )
    assert (about_clients.target_kind, about_cohort.target_kind) == ("clients", "cohort")
    assert about_clients.attack_results[0].headline_row.targets == 2
    assert about_cohort.attack_results[0].headline_row.targets == 1


def test_accuracy_is_that_of_the_last_tested_round(small: Audit) -> None:
    assert [arm.accuracy for arm in small.arm_results] == [0.91, 0.89]


def test_the_runs_of_an_arm_exclude_controls(small: Audit) -> None:
    controls = tuple(replace(run, is_control=True, accuracy={1: 0.0}) for run in small.arms)
    with_controls = with_verdicts(replace(small, arms=(*small.arms, *controls))).arm_results
    assert [arm.accuracy for arm in with_controls] == [0.91, 0.89]
    assert [len(arm.runs) for arm in with_controls] == [1, 1]


def labelled(finding: Finding, label: str, *, is_adaptive: bool = False) -> Finding:
    return replace(finding, cell=replace(finding.cell, label=label, is_adaptive=is_adaptive))


def test_shows_full_names_where_two_labels_are_equal(small: Audit) -> None:
    bold, shy, other = (
        shares_finding("none", client(0), TRUE, (share, 1 - share), attack=name)
        for share, name in ((0.9, "a, bold"), (0.8, "a, shy"), (0.7, "b, long name"))
    )
    findings = (labelled(bold, "a"), labelled(shy, "a"), labelled(other, "b", is_adaptive=True))
    threat_result = (
        with_verdicts(replace(small, findings=findings)).arm_results[0].threat_results[0]
    )
    assert [attack_result.label for attack_result in threat_result.attack_results] == [
        "a, bold",
        "a, shy",
        "b",
    ]
    assert [attack_result.is_adaptive for attack_result in threat_result.attack_results] == [
        False,
        False,
        True,
    ]
    assert threat_result.labels == {
        "a, bold": "a, bold",
        "a, shy": "a, shy",
        "b, long name": "b",
    }


def test_a_label_that_is_the_full_name_of_another_attack_is_not_used() -> None:
    cell = Cell("none", 0, (SERVER,), "a", "A()", "label_shares", (0,), label="x")
    other = replace(cell, attack="b", label="a")
    assert attack_labels((cell, other)) == {"a": "x", "b": "b"}


def test_uses_the_longest_label_across_arms(small: Audit) -> None:
    findings = tuple(
        labelled(shares_finding(arm, client(0), TRUE, (0.9, 0.1), attack="a, knowing"), label)
        for arm, label in (("none", "a"), ("noise", "a, adapting"))
    )
    threat_results = [
        arm.threat_results[0]
        for arm in with_verdicts(replace(small, findings=findings)).arm_results
    ]
    assert [threat_result.attack_results[0].label for threat_result in threat_results] == [
        "a",
        "a, adapting",
    ]
    assert labels_of_results(threat_results) == {"a, knowing": "a, adapting"}


def test_refused_attacks_have_labels_too(small: Audit) -> None:
    cell = Cell("none", 0, (SERVER,), "a, knowing", "A()", "label_shares", (0,), label="a")
    refused = replace(small, findings=(), refusals=(Refusal(cell, client(0), ("updates",)),))
    assert with_verdicts(refused).arm_results[0].threat_results[0].labels == {"a, knowing": "a"}


def test_selecting_a_question_drops_the_results_of_others(small: Audit) -> None:
    all_arms = small.arm_results
    assert select_question(all_arms, "label_shares") == all_arms
    assert [arm.threat_results for arm in select_question(all_arms, "nothing")] == [(), ()]


TO_SERVER = frozenset({SERVER})


def message(number: int, sender: int, body: MessageBody) -> Message:
    return Message(number, client(sender), TO_SERVER, body)


def test_missing_and_unrecorded_replies_are_listed_by_party_and_reason() -> None:
    found = find_lost_replies(
        [
            message(0, 1, MissingReply("late")),
            message(0, 2, UnstoredMessage("weights", "NaN")),
            message(1, 2, UnstoredMessage("weights", "NaN")),
        ]
    )
    assert found == (
        LostReply(client(2), (0, 1), True, "NaN", (SERVER,)),
        LostReply(client(1), (0,), False, "late"),
    )
    assert list(describe_lost_replies(found)) == [
        "client/2, rounds 0, 1: not recorded: NaN.",
        "client/1, round 0: missing: late.",
    ]


def test_only_unrecorded_replies_that_observers_read_stand_against_no_leak() -> None:
    missing = LostReply(client(1), (0,), False, "late")
    unrecorded = LostReply(client(2), (0, 1), True, "NaN", (SERVER,))
    assert doubt_by_lost_replies([missing], (SERVER,)) == ""
    assert doubt_by_lost_replies([unrecorded], (client(3),)) == ""
    found = doubt_by_lost_replies([missing, unrecorded], (SERVER,))
    assert found.startswith("2 replies that arrived are not recorded")
    assert found.endswith("client/2 sent")


def test_a_masked_reply_is_complete_only_where_its_readers_read_fewer_updates() -> None:
    masked = message(0, 1, UnstoredMessage("masked", "masked"))
    other, clear = message(0, 2, masked.body), message(0, 3, Update({}))
    # One client that sends its weights in clear makes the others no less masked.
    assert find_lost_replies([masked, other, clear]) == ()
    # Nothing was masked in a round in which the server reads the updates of the others.
    (hidden,) = find_lost_replies([masked, clear])
    assert (hidden.party, hidden.is_unrecorded) == (client(1), True)


def test_a_text_lists_few_and_counts_the_others() -> None:
    lost = [LostReply(client(number), (0, 1), False, "late") for number in range(23)]
    *listed, last = describe_lost_replies(lost)
    assert len(listed) == 20
    assert last == "6 more replies are missing or not recorded."
