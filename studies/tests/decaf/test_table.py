from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard_studies.decaf.setting import DecafBenchmark, DecafSize
from overheard_studies.decaf.studies import table
from overheard_studies.values import ReproducedValue

pytestmark = pytest.mark.slow

RESOURCES = Resources(engine="sequential")


@pytest.fixture(scope="module")
def values(
    tiny_benchmark: DecafBenchmark,
    tiny_size: DecafSize,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, ReproducedValue]:
    experiment = table("table3", tiny_benchmark, sizes=(tiny_size, tiny_size))
    folder: Path = tmp_path_factory.mktemp("table3")
    run = experiment.run(folder, quick=True, resources=RESOURCES, on_step=None)
    assert len({one.name for one in run}) == len(run)
    return {one.name: one for one in run}


def test_returns_every_value_of_the_table(values: dict[str, ReproducedValue]) -> None:
    assert {
        "mean_l1", "mean_l2", "mean_linf", "null_recall", "null_precision", "null_exact",
        "uniform_on_true_support_l1", "blind_uniform_l1", "mean_softmax_mean_l1",
        "bias_inversion_mean_l1", "mean_l1_round_1", "mean_l1_round_2", "l1_user_1",
        "l1_user_10",
    } <= values.keys()  # fmt: skip


def test_the_mean_l1_is_that_of_the_best_round(values: dict[str, ReproducedValue]) -> None:
    by_round = [values[f"mean_l1_round_{number}"].value for number in (1, 2)]
    assert values["mean_l1"].value == min(by_round)


def test_the_mean_l1_is_the_mean_over_users(values: dict[str, ReproducedValue]) -> None:
    users = [values[f"l1_user_{number}"].value for number in range(1, 11)]
    assert values["mean_l1"].value == pytest.approx(sum(users) / 10)


def test_values_have_their_published_ones(values: dict[str, ReproducedValue]) -> None:
    assert values["mean_l1"].published == pytest.approx(0.1849, abs=1e-4)
    assert values["l1_user_2"].published == pytest.approx(0.1983, abs=1e-4)
    assert values["null_recall"].published == 1


def test_reproduced_guesses_equal_the_published_ones(
    values: dict[str, ReproducedValue],
) -> None:
    # They differ only by the rounding of 60 examples to whole numbers.
    for name in ("uniform_on_true_support_l1", "blind_uniform_l1"):
        assert values[name].value == pytest.approx(values[name].published, abs=0.02)


def test_no_null_class_is_missed(values: dict[str, ReproducedValue]) -> None:
    # Features behind a ReLU are not negative, so the rows of null classes never grow.
    assert values["null_recall"].value == 1
