from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard_studies.decaf.setting import DecafBenchmark, DecafSize
from overheard_studies.decaf.studies import auxiliary, neurons


@pytest.mark.slow
def test_returns_each_distance_for_each_number_of_auxiliary_examples(
    tiny_benchmark: DecafBenchmark, tiny_size: DecafSize, tmp_path: Path
) -> None:
    experiment = auxiliary(tiny_benchmark, counts=(2, 5), sizes=(tiny_size, tiny_size))
    run = experiment.run(
        tmp_path, quick=True, resources=Resources(engine="sequential"), on_step=None
    )
    assert [one.name for one in run[:-1]] == [
        f"mean_{distance}_auxiliary_{number}"
        for number in (2, 5)
        for distance in ("l1", "l2", "linf")
    ]
    assert run[-1].name == "reading_steady"
    assert "2 auxiliary examples per class" in run[0].setting


def test_each_width_has_its_own_network() -> None:
    plans = neurons().plans(quick=False)
    assert {name: one.training.model.hidden for name, one in plans.items()} == {
        "neurons_64": 64,
        "neurons_128": 128,
        "neurons_256": 256,
        "neurons_512": 512,
    }
