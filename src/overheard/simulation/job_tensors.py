"""Conversion of examples and broadcasts to the named tensors of a job, and back."""

from collections.abc import Mapping

from torch import Tensor

from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Weights
from overheard.learning.workers.job import Bundle

BROADCAST = "broadcast/"
"""Prefix of the names of the broadcast's weights."""

BACKGROUND = "background"
"""The name of the public examples, which jobs have only if a known defense may use them."""


def named_examples(name: str, examples: Examples) -> dict[str, Tensor]:
    """Return examples as tensors of a job; `examples_of` is the inverse."""
    return {f"{name}/inputs": examples.inputs, f"{name}/labels": examples.labels}


def examples_of(tensors: Mapping[str, Tensor], name: str) -> Examples:
    """Return the examples of this name from the tensors of a job."""
    return Examples(tensors[f"{name}/inputs"], tensors[f"{name}/labels"])


def background_tensors(knowledge: Knowledge) -> dict[str, Tensor]:
    """Return the public examples as tensors of a job, if a known defense may use them."""
    if knowledge.background is None or not knowledge.defenses:
        return {}
    return named_examples(BACKGROUND, knowledge.background)


def background_of(tensors: Mapping[str, Tensor]) -> Examples | None:
    """Return the public examples from the tensors of a job, if any."""
    return examples_of(tensors, BACKGROUND) if f"{BACKGROUND}/inputs" in tensors else None


def broadcast_bundle(weights: Weights) -> Bundle:
    """Return the broadcast of a round as a bundle for jobs; `broadcast_of` is the inverse."""
    return Bundle({BROADCAST + name: weight for name, weight in weights.items()})


def broadcast_of(tensors: Mapping[str, Tensor]) -> Weights:
    """Return the broadcast from the tensors of a job."""
    return {
        name.removeprefix(BROADCAST): tensor
        for name, tensor in tensors.items()
        if name.startswith(BROADCAST)
    }
