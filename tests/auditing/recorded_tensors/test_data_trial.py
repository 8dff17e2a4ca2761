from pathlib import Path

import numpy as np
import pytest
import torch

from overheard.auditing.recorded_tensors.data_trial import DataTrial, try_data
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import SERVER, client
from overheard.core.transcript import Transcript
from overheard.data.datasets.custom import Own
from overheard.data.reading.scales import Scale
from overheard.learning.model import Model
from overheard.learning.models.mlp import Mlp
from overheard.learning.models.unknown import Unknown
from overheard.plans.data_plan import DataPlan
from overheard.plans.plan import Plan
from tests.auditing.plans import TINY, replace_tables

NAMES = ("cat", "dog", "fox")


def write_spare(path: Path, noise: float = 5) -> None:
    """Write levels near 100 in the column of the class, and near 40 in the others."""
    draws = np.random.default_rng(0)
    labels = np.arange(90) % 3
    levels = 40 + 60 * np.eye(3)[labels] + noise * draws.normal(size=(90, 3))
    np.savez(path, x=levels.astype(np.float32), y=np.array(NAMES)[labels])


def model(slope: float, threshold: float, order: tuple[int, ...] = (0, 1, 2)) -> Transcript:
    """Return a broadcast of a model that ranks the class first whose input is largest.

    Args:
        slope: how fast a hidden unit rises with its input.
        threshold: the input below which it is 0.
        order: the class of each output.

    """
    weights = {
        "1.weight": slope * torch.eye(3),
        "1.bias": torch.full((3,), -slope * threshold),
        "3.weight": torch.eye(3)[list(order)],
        "3.bias": torch.zeros(3),
    }
    return Transcript((Message(0, SERVER, frozenset(), Broadcast(weights)),))


def plan_of(source: Own, network: Model) -> Plan:
    training = TINY.training.model_copy(update={"model": network})
    return replace_tables(TINY, data=DataPlan(source=source), training=training)


def trial(
    tmp_path: Path, transcript: Transcript, scale: Scale | None = None, noise: float = 5
) -> tuple[DataTrial, str]:
    write_spare(tmp_path / "spare.npz", noise)
    source = Own(str(tmp_path / "spare.npz"), scale=scale)
    plan = plan_of(source, Mlp((3,)))
    dataset = source.load(None)
    found = try_data(plan, dataset, transcript, None)
    assert found is not None
    return found, " ".join(found.warnings(dataset))


def trained(source: Own) -> Transcript:
    """Return a broadcast of a model that was trained on this source."""
    train = source.load(None).train
    network = Mlp((3,)).build(source.load(None).task)
    with torch.no_grad():
        for number, one in enumerate(network.parameters()):
            one.copy_(torch.randn(one.shape, generator=torch.Generator().manual_seed(number)))
    parameters = list(network.parameters())
    for _ in range(200):
        loss = torch.nn.functional.cross_entropy(network(train.inputs), train.labels)
        with torch.no_grad():
            for one, change in zip(
                parameters, torch.autograd.grad(loss, parameters), strict=True
            ):
                one.sub_(0.5 * change)
    weights = {name: one.detach() for name, one in network.named_parameters()}
    return Transcript((Message(0, SERVER, frozenset(), Broadcast(weights)),))


@pytest.mark.parametrize("fitting", ["min_max", "standardised"])
def test_proposes_the_scale_that_fits_the_recorded_model(
    tmp_path: Path, fitting: Scale
) -> None:
    write_spare(tmp_path / "spare.npz", noise=30)
    recorded = trained(Own(str(tmp_path / "spare.npz"), scale=fitting))
    other: Scale = "by_255"
    found, warnings = trial(tmp_path, recorded, other, noise=30)
    assert found.fitting_scale == fitting
    assert f'set scale = "{fitting}"' in warnings
    found, warnings = trial(tmp_path, recorded, fitting, noise=30)
    assert found.fitting_scale is None
    assert (found.is_order_seen, warnings) == (True, "")
    assert found.accuracy > 0.45


def updates(inputs: torch.Tensor, noise: float = 0) -> Transcript:
    """Return updates of a model that has learnt nothing yet, by clients with these inputs."""
    draws = torch.Generator().manual_seed(0)
    (broadcast,) = model(1, 1e6).messages
    sent = [broadcast]
    for number in range(6):
        errors = torch.randn(20, 3, generator=draws) + torch.randn(3, generator=draws)
        rows = inputs[torch.randperm(len(inputs), generator=draws)[:20]]
        delta = {
            "1.weight": errors.T @ rows + noise * torch.randn(3, 3, generator=draws),
            "1.bias": errors.sum(0) + noise * torch.randn(3, generator=draws),
            "3.weight": torch.zeros(3, 3),
            "3.bias": torch.zeros(3),
        }
        body = Update(delta, 20, {})
        sent.append(Message(0, client(number), frozenset((SERVER,)), body))
    return Transcript(tuple(sent))


def test_updates_of_the_first_layer_show_the_scale_before_the_model_has_learnt(
    tmp_path: Path,
) -> None:
    write_spare(tmp_path / "spare.npz")
    raw = Own(str(tmp_path / "spare.npz"), scale="as_written").load(None).train.inputs
    assert trial(tmp_path, updates(raw))[0].fitting_scale == "as_written"
    assert trial(tmp_path, updates(raw / 255))[0].fitting_scale == "by_255"
    assert trial(tmp_path, updates(raw), "as_written")[0].fitting_scale is None
    # Inputs of mean 0 leave no mark, and noise hides one.
    standard = (raw - raw.mean(0)) / raw.std(0)
    for scale in ("as_written", "standardised"):
        assert trial(tmp_path, updates(standard), scale)[0].fitting_scale is None
        assert trial(tmp_path, updates(raw, noise=1e6), scale)[0].fitting_scale is None


def test_says_in_which_order_the_model_has_the_classes(tmp_path: Path) -> None:
    found, warnings = trial(tmp_path, model(0.1, 70, (2, 0, 1)), "as_written")
    assert found.order == (2, 0, 1)
    assert "fit the classes in the order fox, cat, dog" in warnings
    assert not found.is_order_seen


def test_a_model_that_knows_nothing_shows_neither_scale_nor_order(tmp_path: Path) -> None:
    # All hidden units are 0 on every scale, and so are all outputs.
    found, warnings = trial(tmp_path, model(1, 1e6))
    assert (found.fitting_scale, found.order, found.is_order_seen) == (None, (), False)
    assert warnings == ""
    assert found.guess == pytest.approx(1 / 3)


@pytest.mark.parametrize("scale", ["as_written", "standardised"])
def test_a_model_that_has_learnt_little_shows_no_order_and_no_scale(
    tmp_path: Path, scale: Scale
) -> None:
    # Outputs are nearly equal, and the largest one is that of another class.
    recorded = model(0.001, 70, (2, 0, 1))
    found, warnings = trial(tmp_path, recorded, scale, noise=60)
    assert (found.fitting_scale, found.order, warnings) == (None, (), "")


def test_a_network_that_is_not_at_hand_is_not_tried(tmp_path: Path) -> None:
    write_spare(tmp_path / "spare.npz")
    source = Own(str(tmp_path / "spare.npz"))
    plan = plan_of(source, Unknown(("1.weight 3x3", "3.bias 3")))
    assert try_data(plan, source.load(None), model(1, 1), None) is None
