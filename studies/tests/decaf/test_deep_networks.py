from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.learning.models.mlp import Mlp
from overheard_studies.decaf.setting import FER2013, DecafBenchmark, DecafSize
from overheard_studies.decaf.studies import NETWORKS, DeepNetwork, deep_networks


@pytest.mark.slow
def test_each_network_is_compared_with_its_own_table(
    tiny_benchmark: DecafBenchmark, tiny_size: DecafSize, tmp_path: Path
) -> None:
    network = DeepNetwork(tiny_benchmark, Mlp((8,)), "table12")
    experiment = deep_networks((network,), sizes=(tiny_size, tiny_size))
    run = experiment.run(
        tmp_path, quick=True, resources=Resources(engine="sequential"), on_step=None
    )
    values = {one.name: one for one in run}
    assert len(values) == len(run)
    # Table XII gives 12.61 percent for user 1.
    assert values["digits_mlp_l1_user_1"].published == pytest.approx(0.1261, abs=1e-3)
    assert values["digits_mlp_null_recall"].better == "higher"


def test_the_larger_network_has_the_larger_published_distances() -> None:
    networks = {one.key: one.table for one in NETWORKS}
    assert networks["cifar10_resnet18"] == "table12"
    assert networks["cifar10_vgg16"] == "table13"


@pytest.mark.slow
def test_networks_whose_data_are_missing_do_not_stop_the_others(
    tiny_benchmark: DecafBenchmark, tiny_size: DecafSize, tmp_path: Path
) -> None:
    networks = (
        DeepNetwork(tiny_benchmark, Mlp((8,)), "table12"),
        DeepNetwork(FER2013, Mlp(), "table9"),
    )
    run = deep_networks(networks, sizes=(tiny_size, tiny_size)).run(
        tmp_path / "out",
        quick=True,
        resources=Resources(data=tmp_path, engine="sequential"),
        on_step=None,
    )
    assert run[-1].name == "fer2013_mlp_not_measured"
    assert not any(one.name.startswith("fer2013_mlp_mean") for one in run)
