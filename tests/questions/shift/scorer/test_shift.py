"""Scores of claims about shifts match values worked by hand."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from overheard.core.claims import Timeline
from overheard.core.errors import ClaimError, NeedsError
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.parties import COHORT, Party, client
from overheard.core.scorer import Score
from overheard.core.true_facts.label_counts import DrawnShares, LabelCounts
from overheard.core.true_facts.shifts import Shifts
from overheard.core.truth import ByRound, GroundTruth, TrueFact
from overheard.questions.shift.claim import GaussianEstimate, Shift
from overheard.questions.shift.scorer.shift import ShiftScorer

SCORER = ShiftScorer()
ROUNDS = tuple(range(6))
ANY_CLAIM = Shift(Timeline())
"""A claim whose content does not affect the ground truth."""

COUNTS = {
    (number, client(party_number)): torch.tensor(
        [6, 2, 2, 0] if party_number == 0 and number >= 3 else [2, 2, 4, 2]
    )
    for number in ROUNDS
    for party_number in (0, 1)
}


def ground_truth(counts: ByRound[Tensor], *more: TrueFact) -> GroundTruth:
    return GroundTruth(Facts(LabelCounts(counts), *more))


SHIFT = Shifts({client(0): (3,)})
SHIFTED = ground_truth(COUNTS, SHIFT)
"""Client 0 goes from (.2, .2, .4, .2) to (.6, .2, .2, 0) in round 3; client 1 stays."""

TRUE_CHANGE = (0.4, 0.0, -0.2, -0.2)

NOTHING = ground_truth(COUNTS)
"""The same without a shift, as if it were a control."""


def shift_of(
    evidence: Timeline | None = None,
    change: tuple[float, ...] | None = None,
    after: tuple[float, ...] | None = None,
    deviation: float = 0.0,
) -> Shift:
    def exact(numbers: tuple[float, ...] | None) -> GaussianEstimate | None:
        if numbers is None:
            return None
        return GaussianEstimate(torch.tensor(numbers), deviation**2 * torch.eye(len(numbers)))

    return Shift(evidence or Timeline(), exact(change), exact(after))


def evidence(
    *, alarm: int | None = None, since: int | None = None, rate: float | None = 0.05
) -> Timeline:
    statistic = tuple(float(alarm is not None and number >= alarm) for number in ROUNDS)
    return Timeline(ROUNDS, statistic, (0.5,) * len(ROUNDS), rate, alarm, since)


def scores(
    claim: Shift,
    ground: GroundTruth = SHIFTED,
    target: Party = client(0),  # noqa: B008
) -> dict[str, Score]:
    truth = SCORER.true_claim(ground, target, ROUNDS, ANY_CLAIM)
    guesses = SCORER.guesses(truth, Knowledge(classes=4))
    return {score.name: score for score in SCORER.score(claim, truth, guesses)}


def numbers(estimate: GaussianEstimate | None) -> list[float]:
    return estimate.value.tolist()


def test_the_truth_is_the_shares_after_minus_those_before() -> None:
    truth = SCORER.true_claim(SHIFTED, client(0), ROUNDS, ANY_CLAIM)
    assert truth.evidence.since == 3
    assert truth.numbers() == pytest.approx(TRUE_CHANGE)
    assert numbers(truth.shares_after) == pytest.approx([0.6, 0.2, 0.2, 0.0])


def test_where_examples_are_drawn_the_truth_is_what_they_are_drawn_from() -> None:
    # Drawn from (.5, .5, 0, 0), then from (0, .5, .5, 0), whatever the counts are by chance.
    before, after = (
        torch.tensor(shares, dtype=torch.float64)
        for shares in ([0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0])
    )
    drawn = SHIFTED.having(DrawnShares({client(0): {0: before, 3: after}}))
    truth = SCORER.true_claim(drawn, client(0), ROUNDS, ANY_CLAIM)
    assert truth.numbers() == pytest.approx((-0.5, 0.0, 0.5, 0.0))
    assert numbers(truth.shares_after) == pytest.approx([0.0, 0.5, 0.5, 0.0])
    # Of the cohort, client 1 has its counts, (.2, .2, .4, .2), and as many examples.
    cohort = SCORER.true_claim(drawn, COHORT, ROUNDS, ANY_CLAIM)
    assert cohort.numbers() == pytest.approx((-0.25, 0.0, 0.25, 0.0))
    # Without a shift nothing changes, although the counts differ from exchange to exchange.
    still = ground_truth(COUNTS, DrawnShares({client(0): {0: before}}))
    assert SCORER.true_claim(still, client(0), ROUNDS, ANY_CLAIM).numbers() == (0.0,) * 4


def test_a_control_has_no_change_and_the_shares_of_all_rounds() -> None:
    truth = SCORER.true_claim(NOTHING, client(1), ROUNDS, ANY_CLAIM)
    assert truth.evidence.since is None
    assert truth.numbers() == (0.0,) * 4
    assert numbers(truth.shares_after) == pytest.approx([0.2, 0.2, 0.4, 0.2])


def test_unchanged_clients_dilute_the_change_of_the_cohort() -> None:
    # Before (4, 4, 8, 4) of 20, after (8, 4, 6, 2): half of client 0's change.
    truth = SCORER.true_claim(SHIFTED, COHORT, ROUNDS, ANY_CLAIM)
    assert truth.evidence.since == 3
    assert truth.numbers() == pytest.approx([0.2, 0.0, -0.1, -0.1])


def test_without_the_shifted_observer_the_others_did_not_change() -> None:
    truth = SCORER.true_claim(SHIFTED.without_parties([client(0)]), COHORT, ROUNDS, ANY_CLAIM)
    assert truth.evidence.since is None
    assert truth.numbers() == (0.0,) * 4


def test_a_client_absent_in_its_shift_round_shifts_in_its_next_round() -> None:
    counts_of = {place: counts for place, counts in COUNTS.items() if place[0] != 3}
    counts_of[3, client(1)] = torch.tensor([2, 2, 4, 2])
    ground = ground_truth(counts_of, SHIFT)
    assert SCORER.true_claim(ground, client(0), ROUNDS, ANY_CLAIM).evidence.since == 4
    assert SCORER.true_claim(ground, COHORT, ROUNDS, ANY_CLAIM).evidence.since == 4


def test_a_client_with_rounds_only_before_or_after_counts_as_unchanged() -> None:
    counts_of = {
        (number, party_number): counts
        for (number, party_number), counts in COUNTS.items()
        if party_number == client(0) or number >= 4
    }
    truth = SCORER.true_claim(ground_truth(counts_of, SHIFT), COHORT, ROUNDS, ANY_CLAIM)
    assert truth.numbers() == pytest.approx([0.2, 0.0, -0.1, -0.1])


@pytest.mark.parametrize("rounds", [(0, 1, 2), (3, 4, 5)])
def test_a_shift_without_rounds_before_or_after_does_not_count(rounds: tuple[int, ...]) -> None:
    truth = SCORER.true_claim(SHIFTED, client(0), rounds, ANY_CLAIM)
    assert truth.evidence.since is None
    assert not any(truth.numbers())


def test_a_gradual_drift_counts_up_to_its_end() -> None:
    counts_of = {(0, client(0)): [4, 0], (1, client(0)): [3, 1], (2, client(0)): [1, 3]}
    ground = ground_truth(
        {place: torch.tensor(counts) for place, counts in counts_of.items()},
        Shifts({client(0): (1,)}),
    )
    truth = SCORER.true_claim(ground, client(0), (0, 1, 2), ANY_CLAIM)
    assert numbers(truth.shares_after) == pytest.approx([0.25, 0.75])
    assert truth.numbers() == pytest.approx([-0.75, 0.75])


def test_refuses_a_target_without_training_or_examples() -> None:
    with pytest.raises(NeedsError, match="no label counts of client/7 in the rounds"):
        SCORER.true_claim(SHIFTED, client(7), ROUNDS, ANY_CLAIM)
    empty = ground_truth({(0, client(0)): torch.zeros(4, dtype=torch.long)})
    with pytest.raises(ValueError, match="held no examples"):
        SCORER.true_claim(empty, client(0), ROUNDS, ANY_CLAIM)


def test_an_alarm_after_the_shift_is_a_detection_with_a_delay() -> None:
    got = scores(shift_of(evidence(alarm=5)))
    assert got["detected"].value == 1.0
    assert got["detected"].best_uninformed == 0.05
    assert got["false_alarm_before"].value == 0.0
    assert got["delay"].value == 2.0
    assert "false_alarm" not in got


def test_an_alarm_before_the_shift_is_no_detection() -> None:
    got = scores(shift_of(evidence(alarm=2)))
    assert (got["detected"].value, got["false_alarm_before"].value) == (0.0, 1.0)
    assert got["false_alarm_before"].references == {"stated": 0.05}
    assert "delay" not in got


def test_no_alarm_is_neither_and_has_no_delay() -> None:
    got = scores(shift_of(evidence()))
    assert (got["detected"].value, got["false_alarm_before"].value) == (0.0, 0.0)
    assert "delay" not in got


def test_without_a_shift_there_is_only_the_false_alarm() -> None:
    raised = scores(shift_of(evidence(alarm=4), change=(0.0,) * 4), NOTHING)
    assert raised.keys() == {"false_alarm"}
    assert raised["false_alarm"].value == 1.0
    assert raised["false_alarm"].references == {"stated": 0.05}
    assert raised["false_alarm"].uninformed == {}
    assert scores(shift_of(evidence()), NOTHING)["false_alarm"].value == 0.0


def test_another_clients_shift_does_not_count() -> None:
    got = scores(shift_of(evidence(alarm=4)), target=client(1))
    assert got.keys() == {"false_alarm"}


def test_a_claim_without_a_threshold_has_no_alarm_scores() -> None:
    silent = Timeline(ROUNDS, (0.0,) * 6, since=4)
    assert scores(shift_of(silent)).keys() == {"round_error"}
    assert scores(shift_of(silent), NOTHING) == {}


def test_compares_the_claimed_round_with_the_middle_of_the_run() -> None:
    # true round 3; rounds 0 .. 5 have their middle at 2.5
    got = scores(shift_of(evidence(since=5)))["round_error"]
    assert (got.value, got.best_uninformed) == (2.0, 0.5)


def test_scores_of_a_change_match_values_worked_by_hand() -> None:
    # The truth is .4, 0, -.2 and -.2, so the errors are -.3, -.1, 0 and +.3.
    got = scores(shift_of(change=(0.1, -0.1, -0.2, 0.1)))
    assert got["change_l1"].value == pytest.approx(0.7)
    assert got["change_l1"].best_uninformed == pytest.approx(0.8)  # no change: .4 + .2 + .2
    # Only label 0 rose, and it is claimed to have risen.
    assert got["direction"].value == 1.0
    # Correct: label 0 (.4) and label 2 (.2) of .8 in all; label 1 did not change.
    assert got["signs_right"].value == pytest.approx(0.75)
    assert "risen_error" not in got


def test_a_claim_of_no_change_scores_half_for_direction() -> None:
    got = scores(shift_of(change=(0.0,) * 4))
    assert got["direction"].value == got["direction"].best_uninformed == 0.5
    assert got["signs_right"].value == got["signs_right"].best_uninformed == 0.5


def test_scores_the_direction_of_detected_shifts_separately() -> None:
    wrong = (-0.1, 0.0, 0.1, 0.0)
    assert scores(shift_of(evidence(alarm=3), wrong))["direction_detected"].value == 0.0
    assert "direction_detected" not in scores(shift_of(evidence(alarm=2), wrong))


def test_scores_the_risen_share_and_its_interval() -> None:
    # Label 0 rose, from .2 to .6. Claimed .5 with a deviation of .1: .5 +- 1.645 * .1.
    got = scores(shift_of(after=(0.5, 0.2, 0.2, 0.1), deviation=0.1))
    assert got["risen_error"].value == pytest.approx(0.1)
    assert got["risen_error"].uninformed == {
        "no change": pytest.approx(0.35)
    }  # equal shares: .25
    assert got["risen_error"].references == {"as before": pytest.approx(0.4)}
    assert got["risen_coverage"].value == 1.0
    assert got["risen_coverage"].uninformed == {}
    sure = scores(shift_of(after=(0.5, 0.2, 0.2, 0.1), deviation=0.05))
    assert sure["risen_coverage"].value == 0.0  # .5 + .08 < .6


def test_coverage_counts_the_labels_inside_their_intervals() -> None:
    # errors (.3, .1, 0, .3) against 1.645 * .1: two of four
    got = scores(shift_of(change=(0.1, -0.1, -0.2, 0.1), deviation=0.1))
    assert got["coverage"].value == pytest.approx(0.5)
    assert got["width"].value == pytest.approx(2 * 1.6449 * 0.1, abs=1e-4)
    assert got["coverage"].uninformed == got["width"].uninformed == {}


def test_a_perfect_claim_has_perfect_scores() -> None:
    got = scores(shift_of(evidence(alarm=3, since=3), TRUE_CHANGE, (0.6, 0.2, 0.2, 0.0)))
    assert len(got) == 12
    for score in got.values():
        assert score.value == pytest.approx({"lower": 0, "higher": 1}[score.better], abs=1e-6)


def test_a_shift_without_a_label_change_has_no_direction() -> None:
    looks = ground_truth(COUNTS, Shifts({client(1): (3,)}))
    got = scores(shift_of(evidence(alarm=3), (0.0,) * 4, (0.25,) * 4), looks, client(1))
    assert got["detected"].value == 1.0
    assert not {"direction", "signs_right", "risen_error", "risen_coverage"} & got.keys()
    assert got["change_l1"].value == 0.0


def test_the_auxiliary_shares_are_a_guess_at_the_new_shares() -> None:
    truth = SCORER.true_claim(SHIFTED, client(0), ROUNDS, ANY_CLAIM)
    auxiliary = Examples(torch.zeros(4, 1), torch.tensor([0, 0, 0, 1]))
    guesses = SCORER.guesses(truth, Knowledge(classes=4, auxiliary=auxiliary))
    (score,) = (
        score
        for score in SCORER.score(shift_of(after=(0.6, 0.2, 0.2, 0.0)), truth, guesses)
        if score.name == "risen_error"
    )
    assert score.value == pytest.approx(0.0, abs=1e-6)
    assert score.uninformed["auxiliary prior"] == pytest.approx(0.15)  # .75 for .6


def test_refuses_a_claim_with_another_number_of_labels() -> None:
    for claim in (shift_of(change=(0.1, -0.1)), shift_of(after=(0.1, 0.9))):
        with pytest.raises(ClaimError, match="has 2 labels, the ground truth 4"):
            scores(claim)


@pytest.mark.slow
@given(st.lists(st.floats(-0.3, 0.3), min_size=4, max_size=4))
def test_scores_of_a_change_are_within_their_bounds(change: list[float]) -> None:
    got = scores(shift_of(change=tuple(change)))
    assert 0 <= got["signs_right"].value <= 1
    assert got["direction"].value in (0.0, 0.5, 1.0)
    opposite = scores(shift_of(change=tuple(-number for number in change)))
    assert got["direction"].value + opposite["direction"].value == 1.0
    assert got["signs_right"].value + opposite["signs_right"].value == pytest.approx(1.0)
