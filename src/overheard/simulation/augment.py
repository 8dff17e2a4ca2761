"""Data augmentation: altered copies of examples, with the label of the original."""

import math
from dataclasses import replace

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from torch.nn import functional

from overheard.core.examples import Examples, concatenate_examples
from overheard.core.seeds import Seed

MAX_ROTATION = math.radians(10)
MAX_ZOOM = 0.1
MAX_SHIFT = 0.1
"""For images: so small that a 6 stays a 6. The shift is relative to half the width."""

TOKEN_DROPOUT = 0.1
"""Probability that a token is left out."""

MAX_TOKEN_SHIFT = 1.5
"""Upper bound on how many positions a token may move back."""

MIN_MIX_WEIGHT = 0.5
"""The smallest weight of the original row of a table when it is mixed with another."""

JITTER = 0.05
"""Noise on a mixed row, in standard deviations of each column within the class."""


def augment_examples(examples: Examples, per_class: int, seed: Seed) -> Examples:
    """Append altered copies to these examples until each class has `per_class`.

    A class that has enough, or none, is not changed. Images are rotated, zoomed and shifted a
    little. Texts lose a few tokens and swap neighbours. Rows of tables are mixed with others of
    their class, with a little noise. Copies add no information. They keep virtual clients from
    memorizing a handful of examples, which a client with hundreds of them would not do. Copies
    may be unrealistic: a text of another meaning, or an impossible row of a table.
    """
    counts = examples.labels.bincount()
    origins = []
    for label in (counts > 0).nonzero().flatten().tolist():
        rows = (examples.labels == label).nonzero().flatten()
        missing = max(0, per_class - len(rows))
        origins.append(rows.repeat(-(-missing // len(rows)))[:missing])
    origin = torch.cat(origins) if origins else torch.arange(0)
    if not len(origin):
        return examples
    inputs = _alter(examples, origin, seed.generator())
    return concatenate_examples((examples, replace(examples.take(origin), inputs=inputs)))


def _alter(
    examples: Examples, origin: Int[Tensor, " copies"], generator: torch.Generator
) -> Shaped[Tensor, "copies ..."]:
    inputs = examples.inputs[origin]
    if not inputs.is_floating_point():
        return _alter_texts(inputs, generator)
    if inputs.dim() == 4:
        return _transform_images(inputs, generator)
    return _mix_rows(examples, origin, generator)


def _transform_images(
    images: Float[Tensor, "copies channels height width"], generator: torch.Generator
) -> Float[Tensor, "copies channels height width"]:
    draws = 2 * torch.rand(len(images), 4, generator=generator) - 1
    rotation, zoom = draws[:, 0] * MAX_ROTATION, 1 + draws[:, 1] * MAX_ZOOM
    shift = draws[:, 2:] * MAX_SHIFT
    sine, cosine = rotation.sin() * zoom, rotation.cos() * zoom
    rows = (
        torch.stack((cosine, -sine, shift[:, 0]), 1),
        torch.stack((sine, cosine, shift[:, 1]), 1),
    )
    maps = torch.stack(rows, 1).to(images)  # (copies, 2, 3)
    grid = functional.affine_grid(maps, list(images.shape), align_corners=False)
    # Pad with the border, as 0 would be a grey frame in standardised images.
    return functional.grid_sample(images, grid, padding_mode="border", align_corners=False)


def _alter_texts(
    texts: Int[Tensor, "copies tokens"], generator: torch.Generator
) -> Int[Tensor, "copies tokens"]:
    """Sort tokens by position plus noise, dropped ones and padding last."""
    dropped = torch.rand(texts.shape, generator=generator) < TOKEN_DROPOUT
    is_token = texts != 0
    # A text that would lose all tokens keeps them.
    is_kept = is_token & ~(dropped & (is_token & ~dropped).any(1, keepdim=True))
    positions = torch.arange(texts.shape[1]) + MAX_TOKEN_SHIFT * torch.rand(
        texts.shape, generator=generator
    )
    order = positions.where(is_kept, torch.inf).argsort(dim=1, stable=True)
    return texts.where(is_kept, 0).gather(1, order)


def _mix_rows(
    examples: Examples, origin: Int[Tensor, " copies"], generator: torch.Generator
) -> Float[Tensor, "copies ..."]:
    inputs, labels = examples.inputs, examples.labels
    partner, deviations = torch.empty_like(origin), torch.empty_like(inputs[origin])
    for label in torch.unique(labels[origin]).tolist():
        rows = (labels == label).nonzero().flatten()
        is_of_label = labels[origin] == label
        choices = torch.randint(len(rows), (int(is_of_label.sum()),), generator=generator)
        partner[is_of_label] = rows[choices]
        deviations[is_of_label] = inputs[rows].std(0, correction=0)
    weight = MIN_MIX_WEIGHT + (1 - MIN_MIX_WEIGHT) * torch.rand(
        len(origin), generator=generator
    )
    weight = weight.view(-1, *[1] * (inputs.dim() - 1)).to(inputs)
    noise = torch.randn(deviations.shape, generator=generator).to(inputs)
    return (
        weight * inputs[origin] + (1 - weight) * inputs[partner] + JITTER * deviations * noise
    )
