from dataclasses import replace

import pytest

from overheard.core.errors import NeedsError
from overheard.core.parties import SERVER, Party, client
from overheard.core.scorer import Score
from overheard.findings.audit import Audit
from overheard.findings.finding import ArmRun, Cell, ClaimRow, Finding, Refusal
from overheard_studies.estimates import (
    FindingFilter,
    final_accuracy,
    find_best_round,
    mean_accuracy,
    mean_guess_score,
    mean_score,
    mean_score_over_rounds,
    select_findings,
)


def cell(number: int, seed: int = 0) -> Cell:
    return Cell("no defense", seed, (SERVER,), "decaf", "Decaf()", "label_shares", (number,))


def finding(number: int, target: Party, l1: float, seed: int = 0) -> Finding:
    score = Score("l1", l1, "lower", {"uniform": 0.5}, {"support": 0.25})
    return Finding(cell(number, seed), (target,), ClaimRow((1.0,)), ClaimRow((1.0,)), (score,))


def audit(*findings: Finding, refusals: tuple[Refusal, ...] = ()) -> Audit:
    arms = (
        ArmRun("no defense", 0, (), {0: 0.1, 1: 0.6}, 0, 2),
        ArmRun("no defense", 1, (), {1: 0.8}, 0, 2),
    )
    return Audit("", "", ("a",), arms, findings, refusals, "", {})


TWO_ROUNDS = audit(
    finding(0, client(0), 0.4),
    finding(0, client(1), 0.2),
    finding(1, client(0), 0.1),
    finding(1, client(1), 0.3),
)


def test_the_accuracy_of_an_arm_leaves_its_controls_out() -> None:
    control = ArmRun("no defense", 1, (), {1: 0.0}, 0, 2, is_control=True)
    with_control = replace(TWO_ROUNDS, arms=(*TWO_ROUNDS.arms, control))
    assert mean_accuracy(with_control, "no defense", 1) == mean_accuracy(
        TWO_ROUNDS, "no defense", 1
    )


def test_means_are_over_the_targets_of_one_round() -> None:
    assert mean_score(TWO_ROUNDS, FindingFilter("decaf", (0,)), "l1").mean == pytest.approx(0.3)
    assert mean_score(TWO_ROUNDS, FindingFilter("decaf", (1,)), "l1").mean == pytest.approx(0.2)


def test_one_target_of_one_seed_has_no_interval() -> None:
    one = mean_score(TWO_ROUNDS, FindingFilter("decaf", (1,), target=client(1)), "l1")
    assert (one.mean, one.low, one.high) == (0.3, None, None)


def test_the_best_round_has_the_lowest_mean() -> None:
    assert find_best_round(TWO_ROUNDS, "decaf", "l1", range(2)) == 1


def test_the_mean_over_rounds_counts_each_user_in_each_round() -> None:
    assert mean_score_over_rounds(TWO_ROUNDS, "decaf", range(2), "l1").mean == pytest.approx(
        0.25
    )


@pytest.mark.parametrize(("guess", "value"), [("uniform", 0.5), ("support", 0.25)])
def test_guesses_and_references_are_read(guess: str, value: float) -> None:
    assert mean_guess_score(TWO_ROUNDS, FindingFilter("decaf", (0,)), "l1", guess).mean == value


def test_accuracy_is_averaged_over_seeds() -> None:
    assert mean_accuracy(TWO_ROUNDS, "no defense", 1).mean == pytest.approx(0.7)


def test_intervals_of_shares_end_at_one() -> None:
    # Student's interval of two runs is far wider: 12.7 standard errors of 0.1.
    accuracy = mean_accuracy(TWO_ROUNDS, "no defense", 1)
    assert (accuracy.low, accuracy.high) == (0.0, 1.0)
    exact = Score("null_exact", 1.0, "higher", {}, {})
    found = [replace(finding(0, client(0), 0.1, seed), scores=(exact,)) for seed in (0, 1)]
    half = replace(found[1], scores=(replace(exact, value=0.5),))
    share = mean_score(audit(found[0], half), FindingFilter("decaf", (0,)), "null_exact")
    assert (share.mean, share.low, share.high) == (0.75, 0.0, 1.0)


def test_a_refused_attack_has_no_value() -> None:
    refusal = Refusal(cell(0), client(0), ("labelled auxiliary examples of every class",))
    with pytest.raises(NeedsError, match="labelled auxiliary examples"):
        select_findings(audit(refusals=(refusal,)), FindingFilter("decaf", (0,)))


def test_an_attack_that_was_not_run_has_no_value() -> None:
    with pytest.raises(NeedsError, match="no such run"):
        select_findings(TWO_ROUNDS, FindingFilter("decaf", (2,)))


def test_the_last_accuracy_is_that_of_the_last_model_measured() -> None:
    # Round 1: 0.6 and 0.8.
    assert final_accuracy(TWO_ROUNDS, "no defense").mean == pytest.approx(0.7)
