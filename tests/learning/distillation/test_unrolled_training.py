from functools import cache

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from overheard.core.seeds import Seed
from overheard.learning.distillation.synthetic import SyntheticExamples, stack_sets
from overheard.learning.distillation.unrolled_training import (
    UnrolledTraining,
)

STEPS, CLASSES, CLIENTS = 4, 3, 2


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1),
        nn.GroupNorm(3, 3),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(3 * 9, CLASSES),
    ).double()


@cache
def unroll(most_bytes: int = 10**9, at_once: int = 1) -> UnrolledTraining:
    """Traced once for all tests."""
    return UnrolledTraining(NETWORK, at_once, most_bytes)


def examples(seed: int) -> SyntheticExamples:
    draw = Seed(seed).generator()
    return SyntheticExamples(
        torch.randn(STEPS, 1, 6, 6, generator=draw, dtype=torch.float64),
        torch.rand(STEPS, CLASSES, generator=draw, dtype=torch.float64),
        0.05 + 0.1 * torch.rand(STEPS, generator=draw, dtype=torch.float64),
    )


NETWORK = network()
NAMES = [name for name, _ in NETWORK.named_parameters()]
START = [one.detach() for one in NETWORK.parameters()]
REAL = torch.randn(CLIENTS, 5, 1, 6, 6, generator=Seed(9).generator(), dtype=torch.float64)
TRUE = torch.randint(CLASSES, (CLIENTS, 5), generator=Seed(8).generator())


def logits(weights: list[Tensor], inputs: Tensor) -> Tensor:
    return functional_call(NETWORK, dict(zip(NAMES, weights, strict=True)), (inputs,))


def outer(weights: list[Tensor], member: int) -> Tensor:
    return nn.functional.cross_entropy(logits(weights, REAL[member]), TRUE[member])


def by_autograd(
    one: SyntheticExamples, member: int, at_once: int
) -> tuple[list[Tensor], SyntheticExamples]:
    """The gradients by autograd through the whole training."""
    leaves = one.map(lambda tensor: tensor.clone().requires_grad_())
    weights = [one.clone().requires_grad_() for one in START]
    for begin in range(0, STEPS, at_once):
        steps = [torch.zeros_like(one) for one in START]
        for x, y, rate in zip(*(one[begin : begin + at_once] for one in leaves), strict=True):
            loss = -(y * logits(weights, x[None])[0].log_softmax(0)).sum()
            slopes = torch.autograd.grad(loss, weights, create_graph=True)
            steps = [s + rate * gradient for s, gradient in zip(steps, slopes, strict=True)]
        weights = [w - s for w, s in zip(weights, steps, strict=True)]
    gradients = torch.autograd.grad(outer(weights, member), list(leaves))
    return [w.detach() for w in weights], SyntheticExamples(*gradients)


def after(weights: list[Tensor]) -> list[Tensor]:
    """Gradients of both clients' losses at their own or the shared weights."""
    each = []
    for member in range(CLIENTS):
        per_client = weights[0].ndim > START[0].ndim
        own = [(w[member] if per_client else w).clone().requires_grad_() for w in weights]
        with torch.enable_grad():
            each.append(torch.autograd.grad(outer(own, member), own))
    return [torch.stack(pair) for pair in zip(*each, strict=True)]


def same(one: SyntheticExamples, other: SyntheticExamples) -> bool:
    return all(a.allclose(b, rtol=1e-8, atol=1e-10) for a, b in zip(one, other, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("most_bytes", "at_once"), [(10**9, 1), (1, 1), (1, 3)])
def test_gradients_of_a_set_per_client_equal_autograd(most_bytes: int, at_once: int) -> None:
    sets = [examples(1), examples(2)]
    gradients = unroll(most_bytes, at_once).gradients(START, stack_sets(sets), after)
    final = unroll(most_bytes, at_once).train(START, stack_sets(sets))
    for member, one in enumerate(sets):
        weights, expected = by_autograd(one, member, at_once)
        assert same(gradients.map(lambda tensor, m=member: tensor[m]), expected)
        assert all(e[member].allclose(w) for e, w in zip(final, weights, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("most_bytes", "at_once"), [(10**9, 1), (1, 1), (10**9, 3)])
def test_gradients_of_a_shared_set_equal_autograd(most_bytes: int, at_once: int) -> None:
    gradients = unroll(most_bytes, at_once).gradients(START, examples(3), after)
    for member in range(CLIENTS):
        weights, expected = by_autograd(examples(3), member, at_once)
        assert same(gradients.map(lambda tensor, m=member: tensor[m]), expected)
    final = unroll(most_bytes, at_once).train(START, examples(3))
    assert all(e.allclose(w) for e, w in zip(final, weights, strict=True))


@pytest.mark.slow
def test_recomputed_weights_have_the_same_bits() -> None:
    whole = unroll().gradients(START, examples(3), after)
    thrifty = unroll(1).gradients(START, examples(3), after)
    assert all(torch.equal(a, b) for a, b in zip(whole, thrifty, strict=True))


def test_training_takes_one_gradient_step_per_example() -> None:
    # Two classes, weights 0: softmax (1/2, 1/2), gradient of the bias (1/2 - y).
    line = nn.Linear(1, 2).double()
    start = [torch.zeros_like(one) for one in line.parameters()]
    one = SyntheticExamples(
        torch.tensor([[2.0]]).double(),
        torch.tensor([[1.0, 0.0]]).double(),
        torch.tensor([0.5]).double(),
    )
    weight, bias = UnrolledTraining(line).train(start, one)
    assert bias.tolist() == pytest.approx([0.25, -0.25])
    assert weight.flatten().tolist() == pytest.approx([0.5, -0.5])
