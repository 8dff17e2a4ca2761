from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard_studies.decaf.setting import DecafBenchmark, DecafSize
from overheard_studies.decaf.studies import defended
from studies.tests.separate_arms import run_one_arm_then_all

pytest.importorskip("dp_accounting")


@pytest.mark.slow
def test_each_arm_has_its_distances_and_its_accuracy(
    tiny_benchmark: DecafBenchmark, tiny_size: DecafSize, tmp_path: Path
) -> None:
    experiment = defended(tiny_benchmark, multipliers=(16.0,), sizes=(tiny_size, tiny_size))
    resources = Resources(engine="sequential")
    run = run_one_arm_then_all(experiment, "dropout", tmp_path, resources)
    values = {one.name: one for one in run}
    assert len(values) == len(run)
    assert values["no_defense_accuracy"].published == pytest.approx(0.9879)
    assert values["dropout_accuracy"].published == pytest.approx(0.986)
    assert values["dp_sgd_16_accuracy"].published == pytest.approx(0.589)
    # Noise has entries of either sign in every row: no class looks null.
    assert values["dp_sgd_16_null_recall"].value < values["no_defense_null_recall"].value
    for arm in ("dp_sgd_16", "local_dp_1"):
        assert values["no_defense_mean_l1"].value < values[f"{arm}_mean_l1"].value
