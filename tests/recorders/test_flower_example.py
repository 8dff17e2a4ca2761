from pathlib import Path

import pytest
import torch

from overheard.auditing.canaries import draw_canaries
from overheard.core.parties import client
from overheard.plans.plan import read_plan

APP = Path(__file__).parents[2] / "examples" / "flower"


@pytest.fixture(autouse=True)
def on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(APP)


def test_the_partition_assigns_each_image_once() -> None:
    from digits_app.task import CLIENT_IMAGES, digits, partition

    inputs, labels = digits()
    parts = [partition(number, 7) for number in range(7)]
    counts = sum(torch.bincount(part[1], minlength=10) for part in parts)
    assert torch.equal(counts, torch.bincount(labels[:CLIENT_IMAGES], minlength=10))
    assigned = torch.cat([part[0] for part in parts]).flatten(1)
    assert torch.equal(
        torch.unique(assigned, dim=0), torch.unique(inputs[:CLIENT_IMAGES].flatten(1), dim=0)
    )


def test_the_plan_has_the_apps_network_and_unused_images() -> None:
    from digits_app.task import CLIENT_IMAGES, build, digits

    plan = read_plan(APP / "plan.toml")
    dataset = plan.data.source.load(None)
    app_weights = build().state_dict()
    plan_weights = plan.training.model.build(dataset.task).state_dict()
    assert {name: one.shape for name, one in plan_weights.items()} == {
        name: one.shape for name, one in app_weights.items()
    }
    inputs, _ = digits()
    unused = torch.cat([dataset.train.inputs, dataset.test.inputs])
    assert torch.equal(unused, inputs[CLIENT_IMAGES:])


def test_a_clients_data_include_its_canaries(tmp_path: Path) -> None:
    pytest.importorskip("flwr", reason="the extra flower is not installed")
    from digits_app.client_app import load_client_data
    from digits_app.task import partition
    from flwr.app import Context, RecordDict

    canary_set = draw_canaries(read_plan(APP / "canaries.toml"), tmp_path / "canaries")
    inputs, labels = partition(3, 10)
    node = {"partition-id": 3, "num-partitions": 10}
    for canaries, more in (("", 0), (str(tmp_path / "canaries"), canary_set.counts[client(3)])):
        context = Context(1, 7, node, RecordDict(), {"canaries": canaries})
        data = load_client_data(context)
        assert [len(part) for part in data] == [len(inputs) + more] * 2
        assert torch.equal(data[0][: len(inputs)], inputs)
        assert torch.equal(data[1][: len(inputs)], labels)
        added = data[0][len(inputs) :]
        assert added.shape == (more, *inputs.shape[1:])
        assert not any(bool((inputs == one).flatten(1).all(1).any()) for one in added)
