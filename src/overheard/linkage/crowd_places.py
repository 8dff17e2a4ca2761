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
from overheard.linkage.layers import Layer, telling_layers
from overheard.linkage.prior_updates import sent_updates
from overheard.linkage.told_beside import crowd_of
from overheard.linkage.user_evidence import UserEvidence


@final
@dataclass(frozen=True, slots=True, eq=False)
class CrowdPlaces:
    """Projections of all senders' updates.

    Args:
        numbers: the index of each sender, from 0.
        senders: index of each update's sender.
        rounds: round of each update.
        places: projections of the updates, one tensor a layer.

    """

    numbers: Mapping[Party, int]
    senders: Int[Tensor, " updates"]
    rounds: Int[Tensor, " updates"]
    places: tuple[Float[Tensor, "updates _"], ...]

    def number(self, who: Party) -> int:
        """Return the index of a sender.

        Raises:
            NeedsError: if it has no readable update.

        """
        if who not in self.numbers:
            raise NeedsError(f"no update of {who} can be read: choose other targets")
        return self.numbers[who]


def crowd_places(view: View, besides: Collection[Party], evidence: UserEvidence) -> CrowdPlaces:
    """Project the updates of all senders but the excluded ones, layer by layer.

    Raises:
        NeedsError: if no sender is left, or an update contains NaN or infinity.

    """
    senders_read = crowd_of(view, besides)
    if not senders_read:
        raise NeedsError(f"comparing senders needs {UPDATES.description}")
    indices = {sender: index for index, sender in enumerate(senders_read)}
    projections = []
    for layer, reading in zip(evidence.layers, evidence.readings, strict=True):
        sent = sent_updates(view, senders_read, layer)
        projections.append(reading.places(sent.vectors, sent.rounds))
    senders = torch.tensor([indices[sender] for sender in sent.senders])
    return CrowdPlaces(indices, senders, sent.rounds, tuple(projections))


def layers_in(view: View) -> tuple[Layer, ...]:
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
    return telling_layers(names)
