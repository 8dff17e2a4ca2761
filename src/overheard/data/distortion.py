"""Distortion of inputs, as if another instrument had recorded them."""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.reading.texts import RESERVED_TOKENS

CONTRAST_LOSS = 0.5
"""Share of its contrast that an image loses at strength 1."""

NOISE_SCALE = 0.5
"""Standard deviation of the noise at strength 1, in standard deviations of the inputs."""


def distort(examples: Examples, task: Task, strength: float, seed: Seed) -> Examples:
    """Distort the inputs of these examples; labels do not change.

    - Images are blurred over 3 x 3 pixels, lose contrast and get noise.
    - Each column of numbers is scaled by its own factor, e^(strength x a standard normal
      number), and gets noise.
    - Each word of a text is replaced by a random one with probability `strength`.

    Args:
        examples: to be distorted.
        task: says whether inputs are images, numbers or texts.
        strength: 0 (no distortion) to 1.
        seed: the seed of the noise.

    """
    if not 0 <= strength <= 1:
        raise ValueError(f"strength must lie between 0 and 1, got {strength}")
    inputs = examples.inputs
    if task.vocabulary is not None:
        changed = _replace_words(inputs, task.vocabulary, strength, seed)
    elif len(task.shape) == 3:
        changed = _add_noise(_blur(inputs, strength), inputs, strength, seed)
    else:
        changed = _add_noise(_rescale(inputs, strength, seed), inputs, strength, seed)
    return replace(examples, inputs=changed)


def _blur(
    images: Float[Tensor, "examples channels height width"], strength: float
) -> Float[Tensor, "examples channels height width"]:
    padded = functional.pad(images, (1, 1, 1, 1), mode="replicate")
    blurred = torch.lerp(images, functional.avg_pool2d(padded, 3, stride=1), strength)
    mean = blurred.mean((1, 2, 3), keepdim=True)
    return mean + (1 - CONTRAST_LOSS * strength) * (blurred - mean)


def _rescale(
    numbers: Float[Tensor, "examples ..."], strength: float, seed: Seed
) -> Float[Tensor, "examples ..."]:
    generator = seed.child("scales").generator()
    return numbers * (strength * torch.randn(numbers.shape[1:], generator=generator)).exp()


def _add_noise(
    changed: Float[Tensor, "examples ..."],
    inputs: Float[Tensor, "examples ..."],
    strength: float,
    seed: Seed,
) -> Float[Tensor, "examples ..."]:
    noise = torch.randn(inputs.shape, generator=seed.child("noise").generator())
    return changed + strength * NOISE_SCALE * inputs.std(correction=0) * noise


def _replace_words(
    tokens: Int[Tensor, "examples tokens"], vocabulary: int, strength: float, seed: Seed
) -> Int[Tensor, "examples tokens"]:
    generator = seed.child("words").generator()
    is_replaced = torch.rand(tokens.shape, generator=generator) < strength
    replacements = torch.randint(RESERVED_TOKENS, vocabulary, tokens.shape, generator=generator)
    # Padding and unknown words stay, so that the length of a text does not change.
    return torch.where(is_replaced & (tokens >= RESERVED_TOKENS), replacements, tokens)
