import torch
from torch.nn.functional import softplus

from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.distillation.moments import StepRates, take_step, zero_moments
from overheard.learning.distillation.synthetic import (
    SyntheticExamples,
    draw_noise_examples,
    stack_sets,
)

TASK = Task((2,), ("a", "b", "c"))
PACE = StepRates(inputs=0.1, labels=0.03, rates=0.001, optimizer="adam")


def some(seed: int) -> SyntheticExamples:
    return draw_noise_examples(TASK, 2, 0.5, Seed(seed)).map(torch.Tensor.double)


def slopes(seed: int) -> SyntheticExamples:
    draw = Seed(seed).generator()
    return some(seed).map(
        lambda one: torch.randn(one.shape, generator=draw, dtype=torch.float64)
    )


def test_adam_steps_equal_those_of_torch() -> None:
    sets, moments = [some(0), some(1)], zero_moments(some(0), 2)
    examples = stack_sets(sets)
    leaves = [[one.clone().requires_grad_() for one in own] for own in sets]
    optimizers = [
        torch.optim.Adam(
            [
                {"params": [one], "lr": 0.5 * rate}
                for one, rate in zip(own, (0.1, 0.03, 0.001), strict=True)
            ]
        )
        for own in leaves
    ]
    for number in range(3):
        gradients = [slopes(10 * number + member) for member in range(2)]
        examples, moments = take_step(examples, stack_sets(gradients), moments, PACE, 0.5)
        for own, optimizer, client_gradients in zip(leaves, optimizers, gradients, strict=True):
            for leaf, gradient in zip(own, client_gradients, strict=True):
                leaf.grad = gradient
            optimizer.step()
    assert moments.steps.tolist() == [3, 3]
    for member, own in enumerate(leaves):
        for leaf, one in zip(own, examples, strict=True):
            assert one[member].allclose(leaf)


def test_softplus_steps_equal_those_of_the_public_code() -> None:
    public = StepRates(inputs=0.01, labels=0.01, rates=0.01, optimizer="adam_softplus")
    one, moments = stack_sets([some(0)]), zero_moments(some(0), 1)
    inputs, labels = some(0).inputs.requires_grad_(), some(0).labels.requires_grad_()
    raw = some(0).rates.expm1().log().requires_grad_()
    optimizer = torch.optim.Adam([inputs, labels, raw], lr=0.01, betas=(0.5, 0.999))
    for number in range(3):
        gradients = slopes(number)
        one, moments = take_step(one, stack_sets([gradients]), moments, public, 1.0)
        rates = softplus(raw)
        inputs.grad, labels.grad = gradients.inputs, gradients.labels
        (raw.grad,) = torch.autograd.grad(rates, raw, gradients.rates)
        optimizer.step()
    for tensor, own in zip((inputs, labels, softplus(raw)), one, strict=True):
        assert own[0].allclose(tensor)


def test_sgd_follows_the_gradient_and_has_no_state() -> None:
    plain = StepRates(inputs=0.1, labels=0.2, rates=0.3, optimizer="sgd")
    one, gradients = stack_sets([some(0)]), stack_sets([slopes(0)])
    examples, moments = take_step(one, gradients, zero_moments(some(0), 1), plain, 2.0)
    assert examples.labels.allclose(one.labels - 0.4 * gradients.labels)
    assert examples.rates.allclose(one.rates - 0.6 * gradients.rates)
    assert not moments.mean.inputs.any()


def test_a_client_that_does_not_take_part_keeps_its_state() -> None:
    moments = zero_moments(some(0), 3)
    clients = torch.tensor([2, 0])
    _, new = take_step(
        stack_sets([some(0)] * 2),
        stack_sets([slopes(1), slopes(2)]),
        moments.select(clients),
        PACE,
        1.0,
    )
    after = moments.replace_clients(clients, new)
    assert after.steps.tolist() == [1, 0, 1]
    assert after.mean.labels[2].equal(new.mean.labels[0])
    assert not after.mean.labels[1].any()
