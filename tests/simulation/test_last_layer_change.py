import torch
from torch import nn

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.simulation.last_layer_change import LastLayerChange
from overheard.simulation.probe import Scene

NONE = Examples(torch.zeros(0, 2), torch.zeros(0, dtype=torch.int64))


def with_bias() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))


def without() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2, bias=False))


def scene(build) -> Scene:
    start = {name: weight.detach() for name, weight in build().named_parameters()}
    return Scene(0, start, build, 2, NONE, NONE, None, Seed(0), "cpu")


def delta(build, value: float) -> dict[str, torch.Tensor]:
    """The last layer's weights changed by 10 times the value, everything else by the value."""
    return {
        name: torch.full_like(weight, 10 * value if name == "2.weight" else value).detach()
        for name, weight in build().named_parameters()
    }


def test_each_class_has_its_row_and_its_bias_last() -> None:
    deltas = [delta(with_bias, 1.0), delta(with_bias, 2.0)]
    read = LastLayerChange().read(scene(with_bias), deltas)
    assert read.tolist() == [[[10, 10, 10, 1]] * 2, [[20, 20, 20, 2]] * 2]


def test_the_bias_of_a_layer_without_one_is_zero() -> None:
    read = LastLayerChange().read(scene(without), [delta(without, 1.0)])
    assert read.tolist() == [[[10, 10, 10, 0]] * 2]


def test_the_global_generator_is_left_alone() -> None:
    where, what = scene(with_bias), [delta(with_bias, 1.0)]
    before = torch.get_rng_state()
    LastLayerChange().read(where, what)
    assert torch.get_rng_state().equal(before)
