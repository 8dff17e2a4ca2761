from dataclasses import replace

import pytest
import torch

from overheard.core.errors import ClaimError, NeedsError
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import CandidateRecords
from overheard.core.parties import COHORT, client
from overheard.core.scorer import Guesses
from overheard.core.true_facts.record_owners import RecordOwners
from overheard.core.truth import GroundTruth
from overheard.questions.membership.claim import Membership
from overheard.questions.membership.scorer import MembershipScorer

SCORER = MembershipScorer()

OWNERS = RecordOwners({client(0): (0, 3), client(1): (1,)})
TRUTH = GroundTruth(Facts(OWNERS))


def values_of(members: list[float], non_members: list[float]) -> dict[str, float]:
    scores = torch.tensor([*members, *non_members])
    true = torch.tensor([1.0] * len(members) + [-1.0] * len(non_members))
    guesses = SCORER.guesses(Membership(true), Knowledge(2))
    scored = SCORER.score(Membership(scores), Membership(true), guesses)
    return {score.name: score.value for score in scored}


def true_of(target) -> list[float]:
    return SCORER.true_claim(TRUTH, target, (0,), Membership(torch.zeros(5))).scores.tolist()


def test_the_truth_labels_members_non_members_and_records_of_others() -> None:
    assert true_of(client(0)) == [1, 0, -1, 1, -1]
    assert true_of(client(1)) == [0, 1, -1, 0, -1]
    assert true_of(COHORT) == [1, 1, -1, 1, -1]


def test_records_of_observers_and_set_aside_records_count_as_neither() -> None:
    rest = TRUTH.without_parties((client(1),))
    true = SCORER.true_claim(rest, client(0), (0,), Membership(torch.zeros(5))).scores.tolist()
    assert true == [1, 0, -1, 1, -1]
    true = SCORER.true_claim(rest, COHORT, (0,), Membership(torch.zeros(5))).scores.tolist()
    assert true == [1, 0, -1, 1, -1]
    aside = TRUTH.having(replace(OWNERS, excluded=frozenset({2})))
    true = SCORER.true_claim(aside, client(0), (0,), Membership(torch.zeros(5))).scores.tolist()
    assert true == [1, 0, 0, 1, -1]


def test_a_target_without_candidate_records_has_no_score() -> None:
    none = TRUTH.having(RecordOwners({**OWNERS.members, client(2): ()}))
    asked = Membership(torch.zeros(5))
    true = SCORER.true_claim(none, client(2), (0,), asked)
    assert true.scores.tolist() == [0, 0, -1, 0, -1]
    assert SCORER.score(asked, true, SCORER.guesses(true, Knowledge(2))) == ()


def test_refuses_a_truth_without_the_targets_records() -> None:
    with pytest.raises(NeedsError, match="which records client/2 trained on"):
        true_of(client(2))


def test_records_of_other_clients_count_as_neither() -> None:
    true = torch.tensor([1.0, 0.0, -1.0])
    guesses = SCORER.guesses(Membership(true), Knowledge(2))
    for middle in (-9.0, 9.0):
        claim = Membership(torch.tensor([1.0, middle, 0.0]))
        scored = SCORER.score(claim, Membership(true), guesses)
        assert [score.value for score in scored] == [1.0, 1.0]


def test_auc_and_accuracy_match_values_worked_by_hand() -> None:
    # Of six pairs 3 > 2, 3 > 1, 3 > 0 and 1 > 0 are correct, 1 and 1 tie, 1 < 2 is wrong.
    values = values_of([3.0, 1.0], [2.0, 1.0, 0.0])
    assert values["membership_auc"] == pytest.approx(4.5 / 6)
    # Both members are above 0, and one of three non-members is not.
    assert values["membership_accuracy"] == pytest.approx((1 + 1 / 3) / 2)


def test_omits_rates_that_require_more_non_members() -> None:
    assert "tpr_at_1_percent" not in values_of([1.0], [0.0] * 99)
    assert "tpr_at_1_percent" in values_of([1.0], [0.0] * 100)
    assert "tpr_at_0.1_percent" not in values_of([1.0], [0.0] * 999)


def test_the_true_positive_rate_at_one_percent_matches_a_value_worked_by_hand() -> None:
    non_members = [float(number) for number in range(200)]
    # All but two of 200 lie at 197 or below: 197.5 and more are above them, and one may tie.
    values = values_of([300.0, 198.0, 197.5, 196.0], non_members)
    assert values["tpr_at_1_percent"] == 0.75


def test_ties_at_the_threshold_count_in_equal_parts() -> None:
    # One non-member is above, and one of the 100 at 5 may be: a hundredth of tied members.
    non_members = [9.0] + [5.0] * 100 + [0.0] * 99
    assert values_of([5.0, 9.5], non_members)["tpr_at_1_percent"] == pytest.approx(
        (1 + 0.01) / 2
    )


def test_equal_scores_get_the_stated_uninformed_guess() -> None:
    values = values_of([0.0] * 10, [0.0] * 1000)
    assert values["membership_auc"] == 0.5
    assert values["membership_accuracy"] == 0.5
    assert values["tpr_at_1_percent"] == pytest.approx(0.01)
    assert values["tpr_at_0.1_percent"] == pytest.approx(0.001)


def test_a_claim_about_another_number_of_records_is_refused() -> None:
    records = Examples(torch.zeros(4, 2), torch.zeros(4, dtype=torch.int64))
    with pytest.raises(ClaimError, match="scores 3 records, there are 4"):
        SCORER.uninformed_guesses(
            Membership(torch.zeros(3)), Knowledge(2, facts=Facts(CandidateRecords(records)))
        )


def skewed_scores(sees_records: bool) -> dict[str, float]:
    """Score a claim that sees labels, and records too, where members are mostly of label 1."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.tensor([1] * 80 + [0] * 20 + [1] * 200 + [0] * 800)
    kinds = torch.tensor([1.0] * 100 + [-1.0] * 1000)
    scores = 3.0 * labels + torch.randn(1100, generator=generator)
    if sees_records:
        scores += 2.0 * (kinds > 0)
    records = Examples(torch.zeros(1100, 1), labels)
    known = Knowledge(2, facts=Facts(CandidateRecords(records)))
    claim = Membership(scores)
    guesses = Guesses(SCORER.uninformed_guesses(claim, known), {})
    return {one.name: one.value for one in SCORER.score(claim, Membership(kinds), guesses)}


def test_labels_alone_are_worth_nothing_within_labels() -> None:
    blind = skewed_scores(sees_records=False)
    assert blind["membership_auc"] > 0.7
    assert blind["membership_auc_within_labels"] == pytest.approx(0.5, abs=0.08)
    assert blind["tpr_at_1_percent_within_labels"] < 0.05
    # A member is two deviations above a non-member of its label: AUC is Phi(2 / sqrt(2)), .921,
    # and Phi(2 - 2.326), .37, are above all but 1 %.
    seen = skewed_scores(sees_records=True)
    assert seen["membership_auc_within_labels"] == pytest.approx(0.921, abs=0.05)
    assert seen["tpr_at_1_percent_within_labels"] == pytest.approx(0.37, abs=0.15)
    assert next(iter(seen)) == "membership_auc_within_labels"


def test_labels_that_do_not_differ_add_no_score() -> None:
    labels = torch.arange(1100) % 2
    known = Knowledge(2, facts=Facts(CandidateRecords(Examples(torch.zeros(1100, 1), labels))))
    claim = Membership(torch.arange(1100.0))
    kinds = Membership(torch.tensor([1.0] * 100 + [-1.0] * 1000))
    guesses = Guesses(SCORER.uninformed_guesses(claim, known), {})
    names = [one.name for one in SCORER.score(claim, kinds, guesses)]
    assert not any("within_labels" in name for name in names)
