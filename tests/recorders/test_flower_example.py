from pathlib import Path

import pytest
import torch

from overheard.audit.plan import read_plan

APP = Path(__file__).parents[2] / "examples" / "flower"


@pytest.fixture(autouse=True)
def on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(APP)


def test_every_image_that_clients_hold_is_held_by_one_of_them() -> None:
    from digits_app.task import HELD, digits, partition

    inputs, labels = digits()
    parts = [partition(number, 7) for number in range(7)]
    counts = sum(torch.bincount(part[1], minlength=10) for part in parts)
    assert torch.equal(counts, torch.bincount(labels[:HELD], minlength=10))
    held = torch.cat([part[0] for part in parts]).flatten(1)
    assert torch.equal(torch.unique(held, dim=0), torch.unique(inputs[:HELD].flatten(1), dim=0))


def test_the_plan_names_the_network_of_the_app_and_images_that_no_client_holds() -> None:
    from digits_app.task import HELD, build, digits

    plan = read_plan(APP / "plan.toml")
    dataset = plan.data.source.load(None)
    there = build().state_dict()
    here = plan.training.model.build(dataset.task).state_dict()
    assert {name: one.shape for name, one in here.items()} == {
        name: one.shape for name, one in there.items()
    }
    inputs, _ = digits()
    nobodys = torch.cat([dataset.train.inputs, dataset.test.inputs])
    assert torch.equal(nobodys, inputs[HELD:])
