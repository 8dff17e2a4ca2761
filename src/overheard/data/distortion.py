"""Distorts examples, as those differ that were gathered elsewhere."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.reading.texts import RESERVED

CONTRAST_LOST = 0.5
"""Part of the contrast that an image loses at strength 1."""

NOISE = 0.5
"""Standard deviation of the noise at strength 1, in standard deviations of the inputs."""


def distorted(examples: Examples, task: Task, strength: float, seed: Seed) -> Examples:
    """The same examples, with the same labels, seen by another instrument.

    Images are blurred over 3 x 3 pixels, lose contrast and get noise; columns of numbers are
    each scaled by a factor of their own, e^(strength x a standard normal number), and get
    noise; words are replaced by any others, each with a chance of `strength`. Which examples
    there are of which label stays as it is.

    Args:
        examples: to be distorted.
        task: tells images, numbers and texts apart.
        strength: from 0, nothing, to 1.
        seed: of the noise.

    """
    if not 0 <= strength <= 1:
        raise ValueError(f"a strength lies between 0 and 1, got {strength}")
    inputs = examples.inputs
    if task.vocabulary is not None:
        changed = _reworded(inputs, task.vocabulary, strength, seed)
    elif len(task.shape) == 3:
        changed = _noisy(_blurred(inputs, strength), inputs, strength, seed)
    else:
        changed = _noisy(_rescaled(inputs, strength, seed), inputs, strength, seed)
    return Examples(changed, examples.labels)


def _blurred(
    images: Float[Tensor, "examples channels height width"], strength: float
) -> Float[Tensor, "examples channels height width"]:
    framed = functional.pad(images, (1, 1, 1, 1), mode="replicate")
    soft = torch.lerp(images, functional.avg_pool2d(framed, 3, stride=1), strength)
    middle = soft.mean((1, 2, 3), keepdim=True)
    return middle + (1 - CONTRAST_LOST * strength) * (soft - middle)


def _rescaled(
    numbers: Float[Tensor, "examples ..."], strength: float, seed: Seed
) -> Float[Tensor, "examples ..."]:
    generator = seed.child("scales").generator()
    return numbers * (strength * torch.randn(numbers.shape[1:], generator=generator)).exp()


def _noisy(
    changed: Float[Tensor, "examples ..."],
    inputs: Float[Tensor, "examples ..."],
    strength: float,
    seed: Seed,
) -> Float[Tensor, "examples ..."]:
    noise = torch.randn(inputs.shape, generator=seed.child("noise").generator())
    return changed + strength * NOISE * inputs.std(correction=0) * noise


def _reworded(
    tokens: Int[Tensor, "examples tokens"], vocabulary: int, strength: float, seed: Seed
) -> Int[Tensor, "examples tokens"]:
    generator = seed.child("words").generator()
    chosen = torch.rand(tokens.shape, generator=generator) < strength
    others = torch.randint(RESERVED, vocabulary, tokens.shape, generator=generator)
    # What is no word stays: the length of a text is part of its form.
    return torch.where(chosen & (tokens >= RESERVED), others, tokens)
