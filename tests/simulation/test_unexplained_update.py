"""The part of an update that class gradients do not explain, and its noise."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from overheard.core.messages import Weights
from overheard.core.seeds import Seed
from overheard.simulation.probe import ProbeContext
from overheard.simulation.unexplained_update import UnexplainedUpdate
from tests.simulation.small_run import CLASSES, blobs, broadcast, build

HELD_OUT = blobs(6)
START = broadcast(0)
NONE_LEFT = -10.0
"""An upper bound of the logarithm where gradients explain all; float32 leaves some 1e-6."""


def read(*deltas: Weights) -> list[list[float]]:
    context = ProbeContext(0, START, build, CLASSES, HELD_OUT, HELD_OUT, None, Seed(0), "cpu")
    return UnexplainedUpdate().read(context, deltas).tolist()


def class_gradient(label: int) -> dict[str, torch.Tensor]:
    model = build()
    model.load_state_dict(START)
    chosen = HELD_OUT.labels == label
    logits = model(HELD_OUT.inputs[chosen])
    functional.cross_entropy(logits, HELD_OUT.labels[chosen]).backward()
    return {name: weight.grad for name, weight in model.named_parameters()}


def noise(size: float, seed: int = 3) -> dict[str, torch.Tensor]:
    generator = Seed(seed).generator()
    return {
        name: size * torch.randn(weight.shape, generator=generator)
        for name, weight in START.items()
    }


def sum_of(*parts: Weights) -> dict[str, torch.Tensor]:
    return {name: sum(part[name] for part in parts) for name in START}


MIXTURE = sum_of(class_gradient(0), class_gradient(2), class_gradient(2))


def test_nothing_is_left_of_a_mixture_of_class_gradients() -> None:
    ((first, whole, _),) = read(MIXTURE)
    assert first < NONE_LEFT
    assert whole < NONE_LEFT


def test_the_rest_is_a_fraction_of_the_squared_length() -> None:
    # A part at right angles to all class gradients, of the length of the mixture: one half.
    flat = torch.stack(
        [torch.cat([w.flatten() for w in class_gradient(c).values()]) for c in range(CLASSES)]
    )
    drawn = torch.cat([part.flatten() for part in noise(1.0).values()])
    free = drawn - flat.T @ torch.linalg.lstsq(flat.T, drawn[:, None]).solution[:, 0]
    mixed = torch.cat([part.flatten() for part in MIXTURE.values()])
    changed = mixed + free * mixed.norm() / free.norm()
    sizes = [weight.numel() for weight in START.values()]
    delta = {
        name: part.view_as(START[name])
        for name, part in zip(START, changed.split(sizes), strict=True)
    }
    ((_, whole, _),) = read(delta)
    assert whole == pytest.approx(math.log(0.5), abs=1e-3)


def test_the_length_of_an_update_changes_nothing() -> None:
    update = sum_of(MIXTURE, noise(0.1))
    scaled = {name: 50 * part for name, part in update.items()}
    assert read(scaled)[0] == pytest.approx(read(update)[0], abs=1e-3)


def test_noise_raises_all_three_readings() -> None:
    clean, noisy = read(MIXTURE, sum_of(MIXTURE, noise(1.0)))
    assert all(after > before + 0.1 for before, after in zip(clean, noisy, strict=True))


def test_the_singular_value_is_that_of_the_largest_matrix() -> None:
    # The first layer is 5 x 4, with squared singular values 1, 4, 9, 16: the lower median is
    # 4 (torch's), the mean 7.5.
    delta = {name: torch.zeros_like(weight) for name, weight in START.items()}
    first = next(iter(delta))
    delta[first] = torch.diag(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    delta[first] = torch.cat((delta[first], torch.zeros(1, 4)))
    ((_, _, middle),) = read(delta)
    assert middle == pytest.approx(math.log(4 / 7.5) / 2, abs=1e-4)


class Adapted(nn.Module):
    """A frozen layer with a low-rank adapter, whose second factor is 0 at its start (LoRA)."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(4, 5)
        self.base.requires_grad_(False)
        self.down = nn.Parameter(torch.ones(2, 4))
        self.up = nn.Parameter(torch.zeros(5, 2))
        self.head = nn.Linear(5, CLASSES)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        adapted = self.base(inputs) + inputs @ self.down.T @ self.up.T
        return self.head(torch.relu(adapted))


def test_nothing_is_explained_of_a_matrix_whose_gradients_are_zero() -> None:
    torch.manual_seed(0)
    names = [name for name, one in Adapted().named_parameters() if one.requires_grad]
    start = {
        name: one.detach() for name, one in Adapted().state_dict().items() if name in names
    }
    context = ProbeContext(0, start, Adapted, CLASSES, HELD_OUT, HELD_OUT, None, Seed(0), "cpu")
    # The adapter's first factor moves, as in the steps after the first.
    delta = {name: torch.ones_like(one) for name, one in start.items()}
    ((first, whole, _),) = UnexplainedUpdate().read(context, [delta]).tolist()
    assert first == 0.0  # the logarithm of all of it
    assert -10 < whole < 0


def test_an_update_of_zeros_is_finite_and_a_diverged_one_is_not() -> None:
    zeros = {name: torch.zeros_like(weight) for name, weight in START.items()}
    still, diverged = read(zeros, {name: part / 0 for name, part in noise(1.0).items()})
    assert all(map(math.isfinite, still))
    assert not all(map(math.isfinite, diverged))
