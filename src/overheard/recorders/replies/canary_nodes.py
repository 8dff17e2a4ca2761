"""Nodes of a Flower run that are canary clients, so that epsilon can be estimated."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, final

import numpy as np
import torch
from annotated_types import Ge, Gt, Le
from numpy.typing import NDArray
from torch import Tensor

from overheard.core.algorithm.canary_direction import draw_canary_direction
from overheard.core.parties import Party, client
from overheard.core.seeds import Seed
from overheard.core.settings import Settings
from overheard.recorders.flower_api import (
    ArrayRecord,
    ClientAppCallable,
    Context,
    Message,
    MessageType,
    RecordDict,
)


@final
@dataclass(frozen=True, slots=True)
class CanaryNodes(Settings):
    """Some nodes of a Flower run send a random direction in place of what they learned.

    Use the same object in both apps, with one line each:

        CANARIES = CanaryNodes(share=0.01, clip=1.0, seed=7)
        app = ClientApp(mods=[..., CANARIES])  # the last mod: others clip it and add noise
        RecordingGrid(grid, "recording", canaries=CANARIES)  # writes truth.json

    The node id and the seed decide whether a node is a canary, and in which direction it
    points, the same in all rounds. It trains as always, and its reply has the metrics of this
    training, but the weights that it received plus a vector of norm `clip`. The data of
    canaries are lost to the model. Anybody who knows the seed knows the canaries.

    Args:
        share: probability that a node is a canary.
        clip: norm of what it sends: the clip of the mechanism that is measured.
        seed: of all draws.

    """

    share: Annotated[float, Gt(0), Le(1)] = 0.01
    clip: Annotated[float, Gt(0)] = 1.0
    seed: Annotated[int, Ge(0)] = 0

    def seeds(self, nodes: Iterable[int]) -> Mapping[Party, int]:
        """Return the seeds of the directions of those of these nodes that are canaries."""
        seeds = {node: Seed(self.seed).child("canary", node) for node in nodes}
        return {
            client(node): seed.value
            for node, seed in sorted(seeds.items())
            if seed.child("is canary").numpy().random() < self.share
        }

    def __call__(
        self, message: Message, context: Context, call_next: ClientAppCallable
    ) -> Message:
        """Let a canary train, and replace the weights in its reply: a mod of Flower."""
        node = message.metadata.dst_node_id
        seeds = self.seeds([node])
        if message.metadata.message_type.partition(".")[0] != MessageType.TRAIN or not seeds:
            return call_next(message, context)
        start = _arrays(message.content)
        reply = call_next(message, context)
        if reply.has_error():
            return reply
        like = {name: torch.from_numpy(one.copy()) for name, one in start.items()}
        direction = draw_canary_direction(like, Seed(seeds[client(node)]))
        moved = {name: _moved(one, self.clip * direction[name]) for name, one in start.items()}
        for record in _records(reply.content).values():
            for name, one in record.items():
                if name in moved:
                    record[name] = type(one)(moved[name])
        return reply


def _moved(start: NDArray[np.generic], change: Tensor) -> NDArray[np.generic]:
    """Return weights after a change; whole numbers stay as they are."""
    moved: NDArray[np.generic] = (start + change.numpy()).astype(start.dtype)
    return moved


def _arrays(content: RecordDict) -> dict[str, NDArray[np.generic]]:
    return {
        name: one.numpy()
        for record in _records(content).values()
        for name, one in record.items()
    }


def _records(content: RecordDict) -> dict[str, ArrayRecord]:
    return {name: one for name, one in content.items() if isinstance(one, ArrayRecord)}
