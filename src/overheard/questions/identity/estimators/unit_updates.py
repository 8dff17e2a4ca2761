"""Known and sent updates as vectors of length 1, from one part of an update or from several."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.view import View
from overheard.linkage.known_updates import (
    KnownUpdates,
    SenderUpdates,
    UpdateSource,
    load_known_updates,
    read_sender_updates,
)
from overheard.linkage.layers import DifferentLayers, Layer

Layers = Layer | DifferentLayers
"""One part of an update, or several parts that are read together."""


def load_unit_updates(
    view: View,
    knowledge: Knowledge,
    source: UpdateSource,
    layers: Layers,
    chunks: int,
    max_rounds: int,
) -> KnownUpdates:
    """Return updates of known users, as `load_known_updates` does, with vectors of length 1.

    Raises:
        NeedsError: if something is missing; the message names it.
        PlanError: if a training diverges.
        WorkerError: if workers die repeatedly.

    """
    known = [
        load_known_updates(view, knowledge, source, layer, chunks, max_rounds)
        for layer in _parts(layers)
    ]
    return replace(known[0], vectors=join_parts([one.vectors for one in known]))


def read_unit_updates(view: View, senders: Sequence[Party], layers: Layers) -> SenderUpdates:
    """Return all updates of some senders, as `read_sender_updates` does, with length 1.

    Raises:
        NeedsError: if the model has no such layer, a sender has no readable update, or an
            update contains NaN or infinity.

    """
    sent = [read_sender_updates(view, senders, layer) for layer in _parts(layers)]
    return replace(sent[0], vectors=join_parts([one.vectors for one in sent]))


def join_parts(
    vectors: Sequence[Float[Tensor, "updates _"]],
) -> Float[Tensor, "updates dims"]:
    """Return each update as one vector of length 1, in which every part has the same length.

    A part that is 0 stays 0. Without equal lengths the largest layer would hide the others.

    >>> join_parts([torch.tensor([[2.0, 0.0]]), torch.tensor([[0.5]])])
    tensor([[0.7071, 0.0000, 0.7071]])
    """
    parts = [normalize(part) for part in vectors]
    return parts[0] if len(parts) == 1 else normalize(torch.cat(parts, 1))


def _parts(layers: Layers) -> tuple[Layer, ...]:
    return layers if isinstance(layers, tuple) else (layers,)
