from pathlib import Path

import pytest

from overheard.auditing.supplies import Resources
from overheard.papers.decaf.benchmark import DecafBenchmark
from overheard.papers.decaf.plans import DecafSize
from overheard.papers.decaf.table import DecafTableExperiment
from overheard.papers.figure import Figure

pytestmark = pytest.mark.slow

RESOURCES = Resources(engine="sequential")


@pytest.fixture(scope="module")
def figures(
    tiny_benchmark: DecafBenchmark,
    tiny_size: DecafSize,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Figure]:
    experiment = DecafTableExperiment("table3", tiny_benchmark, reduced=tiny_size)
    folder: Path = tmp_path_factory.mktemp("table3")
    run = experiment.run(folder, quick=True, resources=RESOURCES, on_step=None)
    assert len({one.name for one in run}) == len(run)
    return {one.name: one for one in run}


def test_gives_every_figure_of_the_table(figures: dict[str, Figure]) -> None:
    assert {
        "mean_l1", "mean_l2", "mean_linf", "null_recall", "null_precision", "null_exact",
        "uniform_on_true_support_l1", "blind_uniform_l1", "mean_softmax_mean_l1",
        "bias_inversion_mean_l1", "mean_l1_round_1", "mean_l1_round_2", "l1_user_1",
        "l1_user_10",
    } <= figures.keys()  # fmt: skip


def test_the_headline_is_that_of_the_best_round(figures: dict[str, Figure]) -> None:
    by_round = [figures[f"mean_l1_round_{number}"].ours for number in (1, 2)]
    assert figures["mean_l1"].ours == min(by_round)


def test_the_headline_is_the_mean_over_the_users(figures: dict[str, Figure]) -> None:
    users = [figures[f"l1_user_{number}"].ours for number in range(1, 11)]
    assert figures["mean_l1"].ours == pytest.approx(sum(users) / 10)


def test_each_figure_stands_beside_the_printed_one(figures: dict[str, Figure]) -> None:
    assert figures["mean_l1"].published == pytest.approx(0.1849, abs=1e-4)
    assert figures["l1_user_2"].published == pytest.approx(0.1983, abs=1e-4)
    assert figures["null_recall"].published == 1


def test_the_guesses_are_ours_and_the_papers_alike(figures: dict[str, Figure]) -> None:
    # Only the rounding of 60 examples to whole numbers lies between them.
    for name in ("uniform_on_true_support_l1", "blind_uniform_l1"):
        assert figures[name].ours == pytest.approx(figures[name].published, abs=0.02)


def test_no_null_class_is_missed(figures: dict[str, Figure]) -> None:
    # Features behind a ReLU are not negative, so the rows of null classes never grow.
    assert figures["null_recall"].ours == 1
