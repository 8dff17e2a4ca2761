"""The updates that senders sent, projected on principal directions of known users' updates."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.messages import Update
from overheard.core.needs import UPDATES
from overheard.core.parties import Party
from overheard.core.view import View
from overheard.linkage.known_updates import read_sender_updates
from overheard.linkage.layers import Layer, default_layers
from overheard.linkage.metadata_features import list_senders
from overheard.linkage.user_evidence import UserEvidence


@final
@dataclass(frozen=True, slots=True, eq=False)
class ProjectedUpdates:
    """Projections of all senders' updates.

    Args:
        sender_indices: by sender, its index, counted from 0.
        senders: by update, the index of its sender.
        rounds: by update, its round.
        projections: by layer, a tensor with one projected update a row.

    """

    sender_indices: Mapping[Party, int]
    senders: Int[Tensor, " updates"]
    rounds: Int[Tensor, " updates"]
    projections: tuple[Float[Tensor, "updates _"], ...]

    def index_of(self, sender: Party) -> int:
        """Return the index of a sender.

        Raises:
            NeedsError: if it has no readable update.

        """
        if sender not in self.sender_indices:
            raise NeedsError(f"no update of {sender} can be read: choose other targets")
        return self.sender_indices[sender]


def project_updates(
    view: View, excluded: Collection[Party], evidence: UserEvidence
) -> ProjectedUpdates:
    """Project the updates of all senders but the excluded ones, layer by layer.

    Raises:
        NeedsError: if no sender is left, or an update contains NaN or infinity.

    """
    parties = list_senders(view, excluded)
    if not parties:
        raise NeedsError(f"comparing senders needs {UPDATES.description}")
    indices = {sender: index for index, sender in enumerate(parties)}
    projections = []
    for layer, layer_evidence in zip(evidence.layers, evidence.layer_evidence, strict=True):
        updates = read_sender_updates(view, parties, layer)
        projections.append(layer_evidence.project(updates.vectors, updates.rounds))
    # All layers have the same updates, in the same order.
    senders = torch.tensor([indices[sender] for sender in updates.senders])
    return ProjectedUpdates(indices, senders, updates.rounds, tuple(projections))


def read_default_layers(view: View) -> tuple[Layer, ...]:
    """Read which layers the updates have, and return the default ones.

    Raises:
        NeedsError: if no update can be read.

    """
    deltas = (
        message.body.delta for message in view.messages if isinstance(message.body, Update)
    )
    delta = next(deltas, None)
    if delta is None:
        raise NeedsError(f"choosing layers needs {UPDATES.description}")
    return default_layers(delta)
