"""Cache keys that differ whenever a cached number could differ."""

from hashlib import blake2b
from typing import final

import torch
from torch import Tensor, nn

from overheard.core.compute_settings import HELD_OUT_PER_CLASS
from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Weights
from overheard.core.seeds import Seed
from overheard.learning.initialization import fresh_model
from overheard.learning.sent_tensors import sent_shapes, unsent_tensors
from overheard.simulation.probe import Probe

VERSION = 2
"""Must be raised whenever the same inputs would give other numbers than before."""


def text_key(text: str) -> str:
    """Return the key of a result that depends only on this text."""
    return blake2b(f"{VERSION} {text}".encode(), digest_size=20).hexdigest()


def combined_key(*parts: str | Tensor) -> str:
    """Return the key of a result that depends on these texts and tensors, in this order."""
    digest = blake2b(f"{VERSION}\n".encode(), digest_size=20)
    for part in parts:
        if isinstance(part, str):
            _add_text(digest, part)
        else:
            _add_tensor(digest, part)
    return digest.hexdigest()


def broadcast_key(common: str, number: int, broadcast: Weights) -> str:
    """Return the key of a result that depends on `common` and on the broadcast of a round."""
    parts = (part for item in broadcast.items() for part in item)
    return combined_key(common, str(number), *parts)


def network_text(model: nn.Module) -> str:
    """Return the printed modules, and a digest of the tensors that are never sent, if any."""
    unsent = unsent_tensors(model)
    if not unsent:
        return str(model)
    parts = (part for item in unsent.items() for part in item)
    return f"{model} {combined_key(*parts)}"


@final
class ReadingKeys:
    """Cache keys of readings, from digests of everything that affects them.

    The repr of a chunk contains the label counts of its clients, and so every effect of prior,
    reported sizes and number of virtual clients. The architecture is represented by the printed
    modules and the shapes of their weights. A custom module that computes something else with
    the same shapes is not detected: use another folder after such a change.
    """

    def __init__(
        self,
        knowledge: Knowledge,
        build_model: BuildModel,
        auxiliary: Examples,
        seed: Seed,
    ) -> None:
        model = fresh_model(build_model, seed)
        shapes = list(sent_shapes(model).items())
        settings = (VERSION, knowledge.classes, knowledge.recipe, knowledge.candidate_recipes())
        digest = blake2b(digest_size=20)
        _add_text(digest, repr((*settings, knowledge.defenses or (), seed, shapes)))
        _add_text(digest, network_text(model))
        for tensor in auxiliary.tensors():
            _add_tensor(digest, tensor)
        if knowledge.compute.held_out_per_class != HELD_OUT_PER_CLASS:
            _add_text(digest, f"held out {knowledge.compute.held_out_per_class}")
        if knowledge.background is not None and knowledge.defenses:
            _add_text(digest, "background")
            for tensor in knowledge.background.tensors():
                _add_tensor(digest, tensor)
        self._common = digest.hexdigest()

    def round_key(self, number: int, broadcast: Weights) -> str:
        """Return the digest of a round, the first argument of `reading`."""
        digest = blake2b(f"{self._common} {number}\n".encode(), digest_size=20)
        for name, weight in broadcast.items():
            _add_text(digest, name)
            _add_tensor(digest, weight)
        return digest.hexdigest()

    def reading_key(self, round: str, chunk: str, probe: Probe) -> str:
        """Return the key of the reading of a probe on the chunk of this repr, given a round."""
        digest = blake2b(round.encode(), digest_size=20)
        _add_text(digest, chunk)
        _add_text(digest, f"{type(probe).__module__} {probe!r}")
        return digest.hexdigest()


def _add_text(digest: blake2b, text: str) -> None:
    digest.update(f"{len(text)} {text}\n".encode())


def _add_tensor(digest: blake2b, tensor: Tensor) -> None:
    digest.update(f"{tensor.dtype} {tuple(tensor.shape)}\n".encode())
    digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
