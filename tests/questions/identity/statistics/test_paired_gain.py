"""The gain of one attack over another is paired by user."""

import pytest

from overheard.questions.identity.statistics.identity_rows import (
    estimate_paired_gain,
    mean_average_precision,
    select_published,
)
from tests.auditing.identity_findings import identity_finding, identity_run

TWO = ("a", "b")


def pair(a: float, b: float, attack: str, seed: int = 0) -> list:
    """Two users with one target each; `a` and `b` are the targets' scores for user a."""
    return [
        identity_finding((a, 0.0), "a", 0, users=TWO, attack=attack, seed=seed),
        identity_finding((b, 0.0), "b", 1, users=TWO, attack=attack, seed=seed),
    ]


def test_the_gain_is_the_mean_difference_of_precision() -> None:
    # For a: own target first (AP 1) against second (1/2); for b both tie: 3/4 either way.
    findings = [*pair(1, 0, "ours"), *pair(0, 1, "mlp")]
    assert estimate_paired_gain(findings, "ours", "mlp").mean == pytest.approx((1 / 2 + 0) / 2)
    assert estimate_paired_gain(findings, "mlp", "ours").mean == pytest.approx(-1 / 4)
    assert estimate_paired_gain(findings, "ours", "ours").mean == 0


def test_users_who_are_hard_for_both_attacks_do_not_widen_the_interval() -> None:
    # The attacks differ by a constant strength, so the paired interval is narrow.
    weak, strong = (
        identity_run(1.0, all_users=30, attack="mlp"),
        identity_run(3.0, all_users=30, attack="ours"),
    )
    gain = estimate_paired_gain([*weak, *strong], "ours", "mlp")
    assert gain.low > 0.2
    same = [*identity_run(1.0, attack="mlp"), *identity_run(1.0, attack="ours")]
    none = estimate_paired_gain(same, "ours", "mlp")
    assert (none.low, none.high) == (0, 0)


def test_a_user_of_several_runs_counts_once() -> None:
    runs = [
        *(one for seed in (0, 1) for one in identity_run(1.0, attack="mlp", seed=seed)),
        *(one for seed in (0, 1) for one in identity_run(2.0, attack="ours", seed=seed)),
    ]
    # 12 users in both runs.
    assert estimate_paired_gain(runs, "ours", "mlp").degrees == 11


def test_excludes_control_runs() -> None:
    controls = [
        *identity_run(0.0, attack="ours", is_control=True),
        *identity_run(3.0, attack="mlp", is_control=True),
    ]
    findings = [*identity_run(3.0, attack="ours"), *identity_run(0.0, attack="mlp"), *controls]
    assert estimate_paired_gain(findings, "ours", "mlp").mean > 0.2


@pytest.mark.parametrize("others", [[], pair(0, 1, "mlp", seed=1), pair(0, 1, "mlp")[:1]])
def test_refuses_to_compare_different_users_or_runs(others: list) -> None:
    with pytest.raises(ValueError, match="must cover the same users"):
        estimate_paired_gain([*pair(1, 0, "ours"), *others], "ours", "mlp")


def test_selects_the_best_version_of_the_published_attack_on_the_same_targets() -> None:
    ours = identity_run(3.0, attack="ours")
    mlp = "reidentify_mlp"
    weak, strong = (identity_run(s, attack=f"mlp {s}", part=mlp) for s in (0.5, 1.5))
    elsewhere = identity_run(2.5, attack="mlp elsewhere", part=mlp, all_users=5)
    groups = [ours, weak, strong, elsewhere]
    assert (
        mean_average_precision(weak)
        < mean_average_precision(strong)
        < mean_average_precision(elsewhere)
    )
    assert select_published(ours, groups) is strong
    assert select_published(weak, groups) == ()
    assert select_published(ours, [ours, elsewhere]) == ()
