"""Updates of all senders, projected on the principal directions of known users' updates."""

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
        sender_indices: the index of each sender, from 0.
        senders: index of each update's sender.
        rounds: round of each update.
        projections: projections of the updates, one tensor a layer.

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
    senders_read = list_senders(view, excluded)
    if not senders_read:
        raise NeedsError(f"comparing senders needs {UPDATES.description}")
    indices = {sender: index for index, sender in enumerate(senders_read)}
    projections = []
    for layer, reading in zip(evidence.layers, evidence.layer_evidence, strict=True):
        sent = read_sender_updates(view, senders_read, layer)
        projections.append(reading.project(sent.vectors, sent.rounds))
    senders = torch.tensor([indices[sender] for sender in sent.senders])
    return ProjectedUpdates(indices, senders, sent.rounds, tuple(projections))


def select_layers(view: View) -> tuple[Layer, ...]:
    """Return the default layers of the observed model.

    Raises:
        NeedsError: if no update can be read.

    """
    deltas = (
        message.body.delta for message in view.messages if isinstance(message.body, Update)
    )
    names = next(deltas, None)
    if names is None:
        raise NeedsError(f"choosing layers needs {UPDATES.description}")
    return default_layers(names)
