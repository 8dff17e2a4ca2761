"""Summary rows about known users, with guesses and the control as references."""

from dataclasses import replace

import pytest

from overheard.core.scorer import Score
from overheard.core.seeds import Seed
from overheard.findings.finding import ClaimRow, Finding
from overheard.findings.score_row import CONTROL_NAME, ScoreRow
from overheard.plans.registries import questions
from tests.auditing.identity_findings import ROUNDS, identity_finding, identity_run

SEED = Seed(8)

USER_SCORES = ["mean_average_precision", "times_chance", "matching_auc", "equal_error_rate"]


def rows(findings: list[Finding], attack: str = "planted") -> dict[str, ScoreRow]:
    question = questions()[findings[0].cell.question]
    every = [row for row in question.summary_rows(findings, SEED) if row.attack == attack]
    by_score = {row.score: row for row in every}
    assert len(by_score) == len(every)
    return by_score


def test_recognised_users_are_compared_with_a_random_order() -> None:
    # Two users with two targets each, all recognised: AP 1. A random order of 2 among 4:
    # H = 25/12, (25/12 + (4 - 25/12) / 3) / 4 = 49/72; 1 / U is 1/2.
    findings = [
        identity_finding((user == "a", user == "b"), user, n, users="ab")
        for n, user in enumerate("aabb")
    ]
    got = rows(findings)
    assert list(got) == USER_SCORES
    row = got["mean_average_precision"]
    assert (row.value.mean, row.best_uninformed) == (1, pytest.approx(49 / 72))
    assert dict(row.references) == {"1 / users": 0.5}
    assert got["times_chance"].value.mean == pytest.approx(72 / 49)
    assert got["times_chance"].best_uninformed == 1
    assert (got["matching_auc"].value.mean, got["matching_auc"].best_uninformed) == (1, 0.5)
    assert (got["equal_error_rate"].value.mean, got["equal_error_rate"].better) == (0, "lower")
    assert (row.targets, row.seeds, row.rounds, row.question) == (4, 1, ROUNDS, "identity")


def test_a_low_error_rate_has_a_positive_gain() -> None:
    gain = rows(identity_run(3.0))["equal_error_rate"].gain
    assert 0 < gain.low < gain.mean < gain.high < 0.5


def test_without_recognition_no_gain_is_significant() -> None:
    for name, row in rows(identity_run(0.0, all_users=20)).items():
        assert row.gain.low < 0 < row.gain.high, name


def test_the_control_is_a_reference_and_not_part_of_the_value() -> None:
    alone, with_control = (
        rows(identity_run(3.0)),
        rows([*identity_run(3.0), *identity_run(0.0, is_control=True)]),
    )
    for name in USER_SCORES:
        assert with_control[name].value == alone[name].value
    assert alone["matching_auc"].references == {}
    assert with_control["matching_auc"].references[CONTROL_NAME] == pytest.approx(0.5, abs=0.1)
    assert with_control["equal_error_rate"].references[CONTROL_NAME] == pytest.approx(
        0.5, abs=0.1
    )
    excess = with_control["control_excess"]
    assert with_control["mean_average_precision"].references[CONTROL_NAME] == excess.value.mean


def test_only_a_leaking_control_is_outside_the_null() -> None:
    for strength, is_outside in ((0.0, False), (2.0, True)):
        row = rows([*identity_run(3.0), *identity_run(strength, is_control=True)])[
            "control_excess"
        ]
        low, high = row.references["null 2.5 %"], row.references["null 97.5 %"]
        assert (row.value.mean > high) == is_outside
        assert low < row.best_uninformed < high
        assert (row.gain.low > 0) == is_outside


def test_open_set_rows_have_the_number_of_unknown_targets() -> None:
    got = rows(identity_run(3.0, strangers=20))
    row = got["dir_at_1_percent"]
    assert row.references["unknown targets"] == 20 * 6
    # One of 120 may be accepted, and the first name is correct by chance in 1 of 12.
    assert row.best_uninformed == pytest.approx(1 / 120 / 12)
    assert 0 < row.value.mean < 1
    few = rows(identity_run(3.0, strangers=2))["dir_at_1_percent"]
    assert few.best_uninformed == 0


def test_the_gain_over_the_published_attack_uses_the_same_targets() -> None:
    mlp = identity_run(1.0, attack="mlp", part="reidentify_mlp")
    gain = rows([*identity_run(3.0, attack="ours"), *mlp], "ours")["gain_over_published"]
    assert gain.value.low > 0
    assert list(gain.references) == ["mlp"]
    assert "gain_over_published" not in rows([*identity_run(3.0, attack="ours"), *mlp], "mlp")
    assert "gain_over_published" not in rows(identity_run(3.0))


def test_a_user_of_several_runs_counts_once() -> None:
    runs = [one for seed in (0, 1) for one in identity_run(2.0, seed=seed)]
    # 12 users in both runs.
    assert rows(runs)["mean_average_precision"].value.degrees == 11


def test_values_are_means_over_runs() -> None:
    findings = [*identity_run(3.0, seed=0), *identity_run(1.0, seed=1)]
    by_seed = [rows(identity_run(3.0, seed=0)), rows(identity_run(1.0, seed=1))]
    got = rows(findings)
    assert got["mean_average_precision"].seeds == 2
    for name in USER_SCORES:
        mean = sum(one[name].value.mean for one in by_seed) / 2
        assert got[name].value.mean == pytest.approx(mean)


def of_sender(finding: Finding, true: tuple[float, ...]) -> Finding:
    return replace(
        finding,
        cell=replace(finding.cell, question="same_sender"),
        true=ClaimRow(true),
        scores=(),
    )


def test_pairs_of_senders_have_matching_scores() -> None:
    # Of the three others, the first is always the same sender: above one other, below one.
    findings = [
        of_sender(identity_finding((2, 3, 1), user, n, users=("x", "y", "z")), (1.0, 0.0, 0.0))
        for n, user in enumerate("aabb")
    ]
    got = rows(findings)
    assert list(got) == ["matching_auc", "equal_error_rate"]
    assert got["matching_auc"].value.mean == 0.5


def test_balanced_accuracy_is_compared_with_a_constant_guess() -> None:
    findings = []
    for number, (user, value, accuracy) in enumerate(
        [("a", 0, 1.0), ("a", 0, 1.0), ("b", 1, 0.0), ("c", 2, 1.0)]
    ):
        bare = identity_finding((1, 0, 0), user, number, users=("x", "y", "z"))
        findings.append(
            replace(
                bare,
                cell=replace(bare.cell, question="attribute"),
                true=ClaimRow(tuple(float(place == value) for place in range(3))),
                scores=(Score("accuracy", accuracy, "higher", {"uniform": 1 / 3}, {}),),
            )
        )
    row = rows(findings)["balanced_accuracy"]
    assert row.value.mean == pytest.approx(2 / 3)
    assert row.best_uninformed == pytest.approx(1 / 3)


def test_one_user_alone_has_no_pairs() -> None:
    got = rows([identity_finding((1.0,), "a", n, users=("a",)) for n in range(3)])
    assert list(got) == ["mean_average_precision", "times_chance"]
    assert got["mean_average_precision"].value.mean == 1
    assert got["mean_average_precision"].value.low is None


def test_tied_users_score_as_in_a_random_order() -> None:
    # Equal scores for both users: all tied, as in a random order.
    findings = [identity_finding((1, 1), user, n, users="ab") for n, user in enumerate("aabb")]
    got = rows(findings)
    assert got["times_chance"].value.mean == pytest.approx(1)
    assert got["equal_error_rate"].value.mean == pytest.approx(0.5)
