from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard_studies.decaf.setting import FER2013, DecafBenchmark, DecafSize
from overheard_studies.decaf.studies import by_round
from overheard_studies.values import ReproducedValue


@pytest.fixture(scope="module")
def values(
    tiny_benchmark: DecafBenchmark,
    tiny_size: DecafSize,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, ReproducedValue]:
    experiment = by_round((tiny_benchmark,), tiny_benchmark, sizes=(tiny_size, tiny_size))
    folder: Path = tmp_path_factory.mktemp("figure6")
    run = experiment.run(
        folder, quick=True, resources=Resources(engine="sequential"), on_step=None
    )
    return {one.name: one for one in run}


def test_returns_each_distance_by_round_and_averaged(
    values: dict[str, ReproducedValue],
) -> None:
    # 2 rounds, 3 distances, by round and averaged; 5 conclusions on one data set.
    assert len(values) == 17
    assert {"digits_mean_linf_round_2", "digits_user_2_l2_rounds_1_to_2"} <= values.keys()


def test_linf_is_at_most_l2_and_l2_at_most_l1(values: dict[str, ReproducedValue]) -> None:
    # For any two lists of shares, Linf <= L2 <= L1.
    for name in ("mean_{}_round_1", "mean_{}_round_2", "user_2_{}_rounds_1_to_2"):
        l1, l2, linf = (values["digits_" + name.format(d)].value for d in ("l1", "l2", "linf"))
        assert 0 < linf <= l2 <= l1


def test_no_value_has_a_published_one(values: dict[str, ReproducedValue]) -> None:
    measured = [one for name, one in values.items() if not name.startswith("reading_")]
    assert {one.published for one in measured} == {None}


@pytest.mark.slow
def test_data_sets_that_are_missing_do_not_stop_the_others(
    tiny_benchmark: DecafBenchmark, tiny_size: DecafSize, tmp_path: Path
) -> None:
    experiment = by_round((tiny_benchmark, FER2013), FER2013, sizes=(tiny_size, tiny_size))
    run = experiment.run(
        tmp_path / "out",
        quick=True,
        resources=Resources(data=tmp_path, engine="sequential"),
        on_step=None,
    )
    # 2 rounds, 3 distances, and one line on what was not measured.
    assert sum(not one.name.startswith("reading_") for one in run) == 7
    assert run[-1].name == "fer2013_not_measured"
    # A data set is judged without the others.
    told = {one.name: one.setting for one in run}
    assert "not run" not in told["reading_digits_decrease"]
    assert "not run: fer2013" in told["reading_fer2013_decrease"]
