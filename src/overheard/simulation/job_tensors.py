"""Conversion of examples and broadcasts to the named tensors of a job, and back."""

from collections.abc import Mapping

from torch import Tensor

from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Broadcast, Weights
from overheard.learning.workers.job import TensorBundle
from overheard.simulation.auxiliary_split import Quarters

BROADCAST_PREFIX = "broadcast/"
"""Prefix of the names of the broadcast's weights."""

WEIGHTS_PREFIX, CONTROL_PREFIX = "weights", "control"
"""Prefixes of the names of a round's weights and of its control variate."""

PARTS = ("inputs", "labels", "float_labels")
"""Names of the tensors of examples; those of a task with classes have no float labels."""

BACKGROUND_NAME = "background"
"""The name of the public examples, which jobs have only if a known defense may use them."""


def pack_examples(name: str, examples: Examples) -> dict[str, Tensor]:
    """Return examples as tensors of a job; `unpack_examples` is the inverse."""
    return {
        f"{name}/{part}": tensor
        for part, tensor in zip(PARTS, examples.tensors(), strict=False)
    }


def unpack_examples(tensors: Mapping[str, Tensor], name: str) -> Examples:
    """Return the examples of this name from the tensors of a job."""
    names = [f"{name}/{part}" for part in PARTS]
    return Examples(*(tensors[part] for part in names if part in tensors))


def pack_quarters(quarters: Quarters) -> dict[str, Tensor]:
    """Return the rows of the pool as tensors of a job; `unpack_quarters` is the inverse."""
    return {
        f"quarter/{half}/{quarter}": rows
        for half, of_half in enumerate(quarters)
        for quarter, rows in enumerate(of_half)
    }


def unpack_quarters(tensors: Mapping[str, Tensor]) -> Quarters:
    """Return the rows of the two quarters of each half from the tensors of a job."""
    first, second = (
        (tensors[f"quarter/{half}/0"], tensors[f"quarter/{half}/1"]) for half in (0, 1)
    )
    return first, second


def pack_background(knowledge: Knowledge) -> dict[str, Tensor]:
    """Return the public examples as tensors of a job, if a known defense may use them."""
    if knowledge.background is None or not knowledge.defenses:
        return {}
    return pack_examples(BACKGROUND_NAME, knowledge.background)


def unpack_background(tensors: Mapping[str, Tensor]) -> Examples | None:
    """Return the public examples from the tensors of a job, if any."""
    return (
        unpack_examples(tensors, BACKGROUND_NAME)
        if f"{BACKGROUND_NAME}/inputs" in tensors
        else None
    )


def pack_broadcast(weights: Weights) -> TensorBundle:
    """Return the broadcast of a round as a bundle for jobs; see `unpack_broadcast`."""
    return TensorBundle({BROADCAST_PREFIX + name: weight for name, weight in weights.items()})


def unpack_broadcast(tensors: Mapping[str, Tensor]) -> Weights:
    """Return the broadcast from the tensors of a job."""
    return {
        name.removeprefix(BROADCAST_PREFIX): tensor
        for name, tensor in tensors.items()
        if name.startswith(BROADCAST_PREFIX)
    }


def pack_history(broadcasts: Mapping[int, Broadcast]) -> dict[str, Tensor]:
    """Return the weights and control variates of rounds as tensors; see `unpack_round`."""
    return {
        f"{prefix}/{number}/{name}": tensor
        for number, body in broadcasts.items()
        for prefix, weights in (
            (WEIGHTS_PREFIX, body.weights),
            (CONTROL_PREFIX, body.control or {}),
        )
        for name, tensor in weights.items()
    }


def unpack_round(tensors: Mapping[str, Tensor], number: int) -> Broadcast:
    """Return the broadcast of a round from the tensors of `pack_history`."""
    weights, control = (
        {
            name.removeprefix(beginning): tensor
            for name, tensor in tensors.items()
            if name.startswith(beginning)
        }
        for beginning in (f"{WEIGHTS_PREFIX}/{number}/", f"{CONTROL_PREFIX}/{number}/")
    )
    return Broadcast(weights, control=control)
