"""What trained models answer."""

from collections.abc import Iterable, Iterator
from itertools import islice

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.seeds import Seed
from overheard.learning.architecture import is_chain_of_linear
from overheard.learning.engines.stacked import stacked_gradients
from overheard.learning.initial import fresh
from overheard.learning.layout import channels_first, channels_last, keep_channels_last
from overheard.learning.loss import expected_rating

STACK = 16
"""Models that answer at once, where they are chains of linear layers."""

STACKED = 2**28
"""Bytes that a stack of models takes at most, if it has more than one: of 100 million
parameters sixteen would fill a memory, and gain nothing by company."""


def logits_of_cohort(
    build_model: BuildModel,
    cohort: Iterable[Weights],
    inputs: Shaped[Tensor, "examples ..."],
    *,
    batch: int = 500,
    device: torch.device | str = "cpu",
) -> Iterator[Float[Tensor, "examples classes"]]:
    """Give each model's logits on the same inputs, in order of the cohort, on the cpu.

    The cohort is read as the logits are taken, a few models ahead at most. Convolutions run in
    channels-last order; chains of linear layers run several models at once.
    """
    model = fresh(build_model, Seed(0)).to(device).eval()
    told = channels_last(inputs.to(device))
    if is_chain_of_linear(model):
        return _stacked(model, iter(cohort), told, batch)
    return _one_by_one(model, cohort, told, batch)


def accuracy(
    build_model: BuildModel,
    weights: Weights,
    examples: Examples,
    device: torch.device | str = "cpu",
) -> float:
    """Share of the examples whose label the model ranks first (0..1)."""
    (logits,) = logits_of_cohort(build_model, [weights], examples.inputs, device=device)
    return float((logits.argmax(1) == examples.labels.cpu()).double().mean())


def top_k_accuracy(
    build_model: BuildModel,
    weights: Weights,
    examples: Examples,
    k: int,
    device: torch.device | str = "cpu",
) -> float:
    """Share of the examples whose label is among the k that the model ranks first (0..1).

    Of labels that tie for the last of these places, each counts by its chance of one: a model
    that ranks nothing gets k / classes, and one whose logits are not numbers 0.
    """
    (logits,) = logits_of_cohort(build_model, [weights], examples.inputs, device=device)
    classes = logits.shape[1]
    if not 1 <= k <= classes:
        raise ValueError(f"k lies in 1 to {classes}, the number of classes, got {k}")
    own = logits.gather(1, examples.labels.cpu().unsqueeze(1))  # (examples, 1)
    level = (logits == own).sum(1)  # with itself
    above = classes - level - (logits < own).sum(1)
    places = (k - above).clamp(min=0)
    return float((places / level.clamp(min=1)).clamp(max=1).double().mean())


def mean_absolute_error(
    build_model: BuildModel,
    weights: Weights,
    examples: Examples,
    device: torch.device | str = "cpu",
) -> float:
    """How far the rating that the model expects lies from the label, on average, in labels.

    That is the rating whose squared error `Recipe.loss` may name: 0 .. classes - 1.
    """
    (logits,) = logits_of_cohort(build_model, [weights], examples.inputs, device=device)
    return float((expected_rating(logits.double()) - examples.labels.cpu()).abs().mean())


def _one_by_one(
    model: nn.Module, cohort: Iterable[Weights], told: Tensor, batch: int
) -> Iterator[Tensor]:
    for weights in cohort:
        model.to(dtype=next(iter(weights.values())).dtype)
        keep_channels_last(model)
        with torch.inference_mode():
            for name, parameter in model.named_parameters():
                parameter.copy_(weights[name])
            parts = [model(channels_first(part)) for part in torch.split(told, batch)]
        # Joined out of inference mode, so that a caller may train on the logits.
        yield torch.cat(parts).cpu()


def _stacked(
    model: nn.Module, cohort: Iterator[Weights], told: Tensor, batch: int
) -> Iterator[Tensor]:
    gradients = stacked_gradients(model)
    names = [name for name, _ in model.named_parameters()]
    own = sum(one.numel() * one.element_size() for one in model.parameters())
    size = max(1, min(STACK, STACKED // own))
    while some := list(islice(cohort, size)):
        with torch.no_grad():
            stack = [torch.stack([weights[name] for weights in some]) for name in names]
            stack = [weights.to(told.device) for weights in stack]
            parts = [
                gradients.logits(stack, part.expand(len(some), *part.shape))
                for part in map(channels_first, torch.split(told, batch))
            ]
            answers = torch.cat(parts, dim=1).cpu()  # (members, examples, classes)
        yield from answers
