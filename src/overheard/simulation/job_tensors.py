"""How examples and broadcasts travel among the named tensors of a job."""

from collections.abc import Mapping

from torch import Tensor

from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Weights
from overheard.learning.workers.job import Bundle

BROADCAST = "broadcast/"
"""Stands before the name of each of the broadcast's weights."""

BACKGROUND = "background"
"""The name of the public examples; absent where no known defense may mix them in."""


def named_examples(name: str, examples: Examples) -> dict[str, Tensor]:
    """Examples as tensors of a job; `examples_of` reads them."""
    return {f"{name}/inputs": examples.inputs, f"{name}/labels": examples.labels}


def examples_of(tensors: Mapping[str, Tensor], name: str) -> Examples:
    """The examples that a job was given under this name."""
    return Examples(tensors[f"{name}/inputs"], tensors[f"{name}/labels"])


def background_tensors(knowledge: Knowledge) -> dict[str, Tensor]:
    """What known defenses may mix in; nothing where nobody would."""
    if knowledge.background is None or not knowledge.defenses:
        return {}
    return named_examples(BACKGROUND, knowledge.background)


def background_of(tensors: Mapping[str, Tensor]) -> Examples | None:
    """The public examples that a job was given, if any."""
    return examples_of(tensors, BACKGROUND) if f"{BACKGROUND}/inputs" in tensors else None


def broadcast_bundle(weights: Weights) -> Bundle:
    """A round's broadcast, for all jobs that start from it; `broadcast_of` reads it."""
    return Bundle({BROADCAST + name: weight for name, weight in weights.items()})


def broadcast_of(tensors: Mapping[str, Tensor]) -> Weights:
    """The broadcast that a job was given."""
    return {
        name.removeprefix(BROADCAST): tensor
        for name, tensor in tensors.items()
        if name.startswith(BROADCAST)
    }
