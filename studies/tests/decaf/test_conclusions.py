from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard_studies.decaf.conclusions import combine, difference, over_runs, random_guess
from overheard_studies.decaf.setting import DecafBenchmark, DecafSize
from overheard_studies.decaf.studies import table


def test_a_statistic_is_one_number_a_run() -> None:
    first, second = {0: 1.0, 1: 2.0, 2: 9.0}, {1: 0.5, 0: 0.25}
    assert combine(lambda one, other: one - other, first, second) == {0: 0.75, 1: 1.5}
    assert difference(first, second, 2.0).mean == pytest.approx(0.75)
    runs = over_runs({seed: float(seed) for seed in range(5)})
    assert (runs.mean, runs.basis) == (2.0, "runs")


def test_the_random_guess_is_far_from_one_class() -> None:
    # With one of ten classes, L1 is 2 (1 - p), and the mean of a random share p is 0.1.
    assert random_guess([0.0] * 9 + [100.0], "l1") == pytest.approx(1.8, abs=0.01)
    even = [random_guess([10.0] * 10, distance) for distance in ("l1", "l2", "linf")]
    assert even == sorted(even, reverse=True)
    # About mean |u - 1/2| / (1/2) = 1/2.
    assert even[0] == pytest.approx(0.5, abs=0.03)


@pytest.mark.slow
def test_a_table_is_concluded_from_its_best_round_by_user(
    tiny_benchmark: DecafBenchmark, tmp_path: Path
) -> None:
    size = DecafSize(rounds=1, seeds=(0, 1), test=50)
    run = table("table3", tiny_benchmark, sizes=(size, size)).run(
        tmp_path, quick=True, resources=Resources(engine="sequential"), on_step=None
    )
    values = {one.name: one for one in run}
    first_three = sum(values[f"l1_user_{user}"].value or 0 for user in (1, 2, 3)) / 3
    assert f"users 1 to 3: {first_three:.2g}" in values["reading_first_three"].setting
    assert values["random_l1"].published == pytest.approx(0.9876, abs=1e-4)
    below = values["reading_below_guess"].setting
    assert all(f"user {user}" in below for user in range(1, 11))
