"""Where all that a crowd sent lies, in the planes of known users."""

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
    """All updates of a crowd, as few numbers.

    Args:
        numbers: of all whose updates are read, counted from 0.
        senders: of each update, by number.
        rounds: of each.
        places: of each in the plane of each layer.

    """

    numbers: Mapping[Party, int]
    senders: Int[Tensor, " updates"]
    rounds: Int[Tensor, " updates"]
    places: tuple[Float[Tensor, "updates _"], ...]

    def number(self, who: Party) -> int:
        """Of one of them.

        Raises:
            NeedsError: if nothing of it was read.

        """
        if who not in self.numbers:
            raise NeedsError(f"no update can be read of {who}: ask about others")
        return self.numbers[who]


def crowd_places(view: View, besides: Collection[Party], evidence: UserEvidence) -> CrowdPlaces:
    """Read all whose updates can be read but these, one layer after another.

    Raises:
        NeedsError: if nobody is left, or an update holds what is no number.

    """
    crowd = crowd_of(view, besides)
    if not crowd:
        raise NeedsError(f"to tell senders apart needs {UPDATES.words}")
    numbers = {who: number for number, who in enumerate(crowd)}
    places = []
    for layer, reading in zip(evidence.layers, evidence.readings, strict=True):
        sent = sent_updates(view, crowd, layer)
        places.append(reading.places(sent.vectors, sent.rounds))
    senders = torch.tensor([numbers[who] for who in sent.senders])
    return CrowdPlaces(numbers, senders, sent.rounds, tuple(places))


def layers_in(view: View) -> tuple[Layer, ...]:
    """The layers that tell most of the model that is heard.

    Raises:
        NeedsError: if no update can be read.

    """
    deltas = (one.body.delta for one in view.messages if isinstance(one.body, Update))
    names = next(deltas, None)
    if names is None:
        raise NeedsError(f"the choice of layers needs {UPDATES.words}")
    return telling_layers(names)
