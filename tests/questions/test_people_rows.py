"""What all targets together tell stands in rows, chance and control beside."""

from dataclasses import replace

import pytest

from overheard.auditing.summary import summarise
from overheard.core.scorer import Score
from overheard.core.seeds import Seed
from overheard.findings.finding import Finding
from overheard.findings.row import CONTROL, Row
from overheard.plans.kinds import questions
from tests.auditing.recognised import ROUNDS, found, run

SEED = Seed(8)

OF_A_USER = ["mean_average_precision", "times_chance", "matching_auc", "equal_error_rate"]


def rows(findings: list[Finding], attack: str = "planted") -> dict[str, Row]:
    question = questions()[findings[0].cell.question]
    told = [row for row in question.rows(findings, SEED) if row.attack == attack]
    named = {row.score: row for row in told}
    assert len(named) == len(told)
    return named


def test_people_who_are_recognised_are_told_beside_a_random_order() -> None:
    # Two people, two targets each, told apart: AP 1. A random order of 2 among 4:
    # H = 25/12, (25/12 + (4 - 25/12) / 3) / 4 = 49/72; 1 / U is 1/2.
    held = [found((who == "a", who == "b"), who, n, users="ab") for n, who in enumerate("aabb")]
    got = rows(held)
    assert list(got) == OF_A_USER
    row = got["mean_average_precision"]
    assert (row.value.mean, row.blind) == (1, pytest.approx(49 / 72))
    assert dict(row.references) == {"1 / users": 0.5}
    assert got["times_chance"].value.mean == pytest.approx(72 / 49)
    assert got["times_chance"].blind == 1
    assert (got["matching_auc"].value.mean, got["matching_auc"].blind) == (1, 0.5)
    assert (got["equal_error_rate"].value.mean, got["equal_error_rate"].better) == (0, "lower")
    assert (row.targets, row.seeds, row.rounds, row.question) == (4, 1, ROUNDS, "identity")


def test_where_errors_are_few_the_gain_is_above_0_although_lower_is_better() -> None:
    gain = rows(run(3.0))["equal_error_rate"].gain
    assert gain is not None
    assert gain.low is not None
    assert gain.high is not None
    assert 0 < gain.low < gain.mean < gain.high < 0.5


def test_where_nobody_is_recognised_no_gain_lies_clear_of_0() -> None:
    for name, row in rows(run(0.0, people=20)).items():
        assert row.gain is not None, name
        assert row.gain.low is not None
        assert row.gain.high is not None
        assert row.gain.low < 0 < row.gain.high, name


def test_the_control_stands_beside_and_never_in_the_figure() -> None:
    alone, beside = rows(run(3.0)), rows([*run(3.0), *run(0.0, is_control=True)])
    for name in OF_A_USER:
        assert beside[name].value == alone[name].value
    assert alone["matching_auc"].references == {}
    assert beside["matching_auc"].references[CONTROL] == pytest.approx(0.5, abs=0.1)
    assert beside["equal_error_rate"].references[CONTROL] == pytest.approx(0.5, abs=0.1)
    excess = beside["control_excess"]
    assert beside["mean_average_precision"].references[CONTROL] == excess.value.mean


def test_a_control_without_leak_lies_inside_the_null_and_a_leaking_one_outside() -> None:
    for strength, is_outside in ((0.0, False), (2.0, True)):
        row = rows([*run(3.0), *run(strength, is_control=True)])["control_excess"]
        low, high = row.references["null 2.5 %"], row.references["null 97.5 %"]
        assert (row.value.mean > high) == is_outside
        assert row.blind is not None
        assert low < row.blind < high
        assert row.gain is not None
        assert row.gain.low is not None
        assert (row.gain.low > 0) == is_outside


def test_controls_alone_are_no_finding() -> None:
    assert rows(list(run(3.0, is_control=True))) == {}
    assert summarise(run(3.0, is_control=True), SEED) == ()


def test_strangers_are_told_with_their_number() -> None:
    got = rows(run(3.0, strangers=20))
    row = got["dir_at_1_percent"]
    assert row.references["unknown targets"] == 20 * 6
    # One of 120 may pass, and the first name is right by chance in 1 of 12.
    assert row.blind == pytest.approx(1 / 120 / 12)
    assert 0 < row.value.mean < 1
    few = rows(run(3.0, strangers=2))["dir_at_1_percent"]
    assert few.blind == 0


def test_the_gain_over_the_published_attack_is_told_on_the_same_targets() -> None:
    mlp = run(1.0, attack="mlp", part="reidentify_mlp")
    gain = rows([*run(3.0, attack="ours"), *mlp], "ours")["gain_over_published"]
    assert gain.value.low is not None
    assert gain.value.low > 0
    assert list(gain.references) == ["mlp"]
    assert "gain_over_published" not in rows([*run(3.0, attack="ours"), *mlp], "mlp")
    assert "gain_over_published" not in rows(run(3.0))


def test_figures_are_means_over_runs() -> None:
    held = [*run(3.0, seed=0), *run(1.0, seed=1)]
    each = [rows(run(3.0, seed=0)), rows(run(1.0, seed=1))]
    got = rows(held)
    assert got["mean_average_precision"].seeds == 2
    for name in OF_A_USER:
        mean = sum(one[name].value.mean for one in each) / 2
        assert got[name].value.mean == pytest.approx(mean)


def of_sender(finding: Finding, true: tuple[float, ...]) -> Finding:
    return replace(
        finding, cell=replace(finding.cell, question="same_sender"), true=true, scores=()
    )


def test_pairs_of_senders_are_told_apart() -> None:
    # Of the three others each time the first is the same: above one other, below the other.
    held = [
        of_sender(found((2, 3, 1), who, n, users=("x", "y", "z")), (1.0, 0.0, 0.0))
        for n, who in enumerate("aabb")
    ]
    got = rows(held)
    assert list(got) == ["matching_auc", "equal_error_rate"]
    assert got["matching_auc"].value.mean == 0.5


def test_an_attribute_has_its_mean_over_values_beside_always_the_same() -> None:
    held = []
    for number, (who, value, right) in enumerate(
        [("a", 0, 1.0), ("a", 0, 1.0), ("b", 1, 0.0), ("c", 2, 1.0)]
    ):
        bare = found((1, 0, 0), who, number, users=("x", "y", "z"))
        held.append(
            replace(
                bare,
                cell=replace(bare.cell, question="attribute"),
                true=tuple(float(place == value) for place in range(3)),
                scores=(Score("accuracy", right, "higher", {"uniform": 1 / 3}, {}),),
            )
        )
    row = rows(held)["balanced_accuracy"]
    assert row.value.mean == pytest.approx(2 / 3)
    assert row.blind == pytest.approx(1 / 3)


def test_one_user_alone_has_precisions_and_no_pairs() -> None:
    got = rows([found((1.0,), "a", n, users=("a",)) for n in range(3)])
    assert list(got) == ["mean_average_precision", "times_chance"]
    assert got["mean_average_precision"].value.mean == 1
    assert got["mean_average_precision"].value.low is None


def test_identical_users_are_half_recognised() -> None:
    # Alike scores for both: ties everywhere, so what a random order gets.
    held = [found((1, 1), who, n, users="ab") for n, who in enumerate("aabb")]
    got = rows(held)
    assert got["times_chance"].value.mean == pytest.approx(1)
    assert got["equal_error_rate"].value.mean == pytest.approx(0.5)


@pytest.mark.parametrize("question", ["identity", "same_sender", "attribute"])
def test_of_nothing_there_is_nothing_to_tell(question: str) -> None:
    assert questions()[question].rows([], SEED) == ()
