import torch
from torch import nn

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.simulation.last_layer_change import LastLayerChange
from overheard.simulation.probe import ProbeContext

NO_EXAMPLES = Examples(torch.zeros(0, 2), torch.zeros(0, dtype=torch.int64))


def with_bias() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))


def without_bias() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2, bias=False))


def context_of(build) -> ProbeContext:
    start = {name: weight.detach() for name, weight in build().named_parameters()}
    return ProbeContext(0, start, build, 2, NO_EXAMPLES, NO_EXAMPLES, None, Seed(0), "cpu")


def delta(build, value: float) -> dict[str, torch.Tensor]:
    """Return an update of 10 times the value in the last layer's weights, else the value."""
    return {
        name: torch.full_like(weight, 10 * value if name == "2.weight" else value).detach()
        for name, weight in build().named_parameters()
    }


def test_each_class_has_a_row_with_its_bias_last() -> None:
    deltas = [delta(with_bias, 1.0), delta(with_bias, 2.0)]
    reading = LastLayerChange().read(context_of(with_bias), deltas)
    assert reading.tolist() == [[[10, 10, 10, 1]] * 2, [[20, 20, 20, 2]] * 2]


def test_a_missing_bias_is_read_as_zero() -> None:
    reading = LastLayerChange().read(context_of(without_bias), [delta(without_bias, 1.0)])
    assert reading.tolist() == [[[10, 10, 10, 0]] * 2]
