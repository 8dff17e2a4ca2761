"""Which arm no other beats, whichever way a score is better."""

from dataclasses import replace

from overheard.auditing.threat_results import with_verdicts
from overheard.core.parties import SERVER
from overheard.core.scorer import Better
from overheard.findings.audit import Audit
from overheard.findings.score_row import ScoreRow
from overheard.report.frontier_figures import (
    FrontierPoint,
    frontier_points,
    pareto_front,
    strongest_attacks,
)
from overheard.statistics.estimate import Estimate


def standing(
    arm: str,
    value: float,
    kept: float,
    *,
    attack: str = "ours",
    better: Better = "lower",
    best_uninformed: float | None = 0.9,
) -> FrontierPoint:
    mean = Estimate(value, None, None)
    place = (arm, (SERVER,), attack, "label_shares", (0,), "l1", better)
    row = ScoreRow(*place, mean, {}, {}, best_uninformed, None, 1, 1)
    return FrontierPoint(arm, attack, attack, False, row, kept, None)


def names(held: tuple[FrontierPoint, ...]) -> list[str]:
    return [one.arm for one in held]


def kept(one: FrontierPoint) -> float:
    return one.accuracy_retained


def test_leakage_follows_the_direction_of_the_score() -> None:
    errors = [standing("far", 0.5, 1.0), standing("near", 0.1, 1.0)]
    assert names(pareto_front(errors, kept)) == ["far"]
    rates = [standing(one.arm, one.row.value.mean, 1.0, better="higher", best_uninformed=0.05)
             for one in errors]  # fmt: skip
    assert names(pareto_front(rates, kept)) == ["near"]


def test_the_strongest_attack_on_an_arm_is_that_with_the_smallest_error() -> None:
    held = [
        standing("none", 0.3, 1.0, attack="weak"),
        standing("none", 0.1, 1.0, attack="strong"),
        standing("noise", 0.4, 0.9, attack="weak"),
        standing("noise", 0.8, 0.9, attack="strong"),
    ]
    assert [(one.arm, one.attack) for one in strongest_attacks(held)] == [
        ("none", "strong"),
        ("noise", "weak"),
    ]


def test_an_attack_worse_than_guessing_counts_as_guessing() -> None:
    # Both leave an attacker nothing but to guess: the one that keeps more beats the other.
    wild, calm = standing("wild", 1.7, 0.5), standing("calm", 0.95, 0.8)
    assert wild.leakage == calm.leakage == -0.9
    assert names(pareto_front((wild, calm), kept)) == ["calm"]
    unguessed = [
        standing(one.arm, one.row.value.mean, one.accuracy_retained, best_uninformed=None)
        for one in (wild, calm)
    ]
    assert names(pareto_front(unguessed, kept)) == ["wild", "calm"]


def test_equal_points_do_not_dominate_each_other() -> None:
    held = [standing("one", 0.3, 0.9), standing("other", 0.3, 0.9), standing("dear", 0.3, 0.8)]
    assert names(pareto_front(held, kept)) == ["one", "other"]


def test_accuracy_retained_is_relative_to_the_undefended_arm(small: Audit) -> None:
    ((asked, held),) = frontier_points(small.arm_results).items()
    assert asked == "The server, about each client: label shares"
    assert [(one.arm, one.attack) for one in held] == [("none", "decaf"), ("noise", "decaf")]
    assert [one.accuracy_retained for one in held] == [1.0, 0.89 / 0.91]
    # l1 of 0.20 and 0.04 without defenses; with noise the guess itself, 1.0 and 0.6.
    assert [round(one.leakage, 6) for one in held] == [-0.12, -0.8]


def test_undefined_scores_give_no_points(small: Audit) -> None:
    spoilt = [
        replace(one, scores=tuple(replace(score, value=float("nan")) for score in one.scores))
        if one.cell.arm == "noise"
        else one
        for one in small.findings
    ]
    assert (
        frontier_points(with_verdicts(replace(small, findings=tuple(spoilt))).arm_results) == {}
    )
