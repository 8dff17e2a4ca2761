"""Names on the shelf that differ where any number could."""

from hashlib import blake2b
from typing import final

import torch
from torch import Tensor

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Weights
from overheard.core.seeds import Seed
from overheard.learning.initial import fresh
from overheard.simulation.probe import Probe

VERSION = 1
"""To be raised whenever the same things would give other numbers than before."""


def text_key(text: str) -> str:
    """The key of what hangs on nothing but what a text tells."""
    return blake2b(f"{VERSION} {text}".encode(), digest_size=20).hexdigest()


def key_of(*parts: str | Tensor) -> str:
    """The key of what hangs on these texts and numbers, in this order."""
    digest = blake2b(f"{VERSION}\n".encode(), digest_size=20)
    for part in parts:
        if isinstance(part, str):
            _add_text(digest, part)
        else:
            _add_tensor(digest, part)
    return digest.hexdigest()


def broadcast_key(common: str, number: int, broadcast: Weights) -> str:
    """The key of what hangs on this one's things and on the broadcast of a round."""
    told = (part for named in broadcast.items() for part in named)
    return key_of(common, str(number), *told)


@final
class Keys:
    """Digests of all that moves a reading, a part at a time, so that none is read twice.

    A chunk's repr says what its clients hold, and with it all that the prior, the sizes told
    and the number of virtual clients could change. The architecture counts as what its modules
    print and the shapes of their weights: a module of the user's own that computes something
    else in the same shape is not noticed, so such a change wants another folder.
    """

    def __init__(
        self,
        knowledge: Knowledge,
        build_model: BuildModel,
        auxiliary: Examples,
        seed: Seed,
    ) -> None:
        model = fresh(build_model, seed)
        shapes = [(name, tuple(weight.shape)) for name, weight in model.named_parameters()]
        known = (VERSION, knowledge.classes, knowledge.recipe, knowledge.recipes())
        digest = blake2b(digest_size=20)
        _add_text(digest, repr((*known, knowledge.defenses or (), seed, shapes)))
        _add_text(digest, str(model))
        _add_tensor(digest, auxiliary.inputs)
        _add_tensor(digest, auxiliary.labels)
        if knowledge.background is not None and knowledge.defenses:
            _add_text(digest, "background")
            _add_tensor(digest, knowledge.background.inputs)
            _add_tensor(digest, knowledge.background.labels)
        self._common = digest.hexdigest()

    def round(self, number: int, broadcast: Weights) -> str:
        """The part that a round adds."""
        digest = blake2b(f"{self._common} {number}\n".encode(), digest_size=20)
        for name, weight in broadcast.items():
            _add_text(digest, name)
            _add_tensor(digest, weight)
        return digest.hexdigest()

    def reading(self, round: str, chunk: str, probe: Probe) -> str:
        """The key of what one probe read off the chunk of this repr, given the round's part."""
        digest = blake2b(round.encode(), digest_size=20)
        _add_text(digest, chunk)
        _add_text(digest, f"{type(probe).__module__} {probe!r}")
        return digest.hexdigest()


def _add_text(digest: blake2b, text: str) -> None:
    digest.update(f"{len(text)} {text}\n".encode())


def _add_tensor(digest: blake2b, tensor: Tensor) -> None:
    digest.update(f"{tensor.dtype} {tuple(tensor.shape)}\n".encode())
    digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
