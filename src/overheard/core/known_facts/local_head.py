"""A network whose last layer stays with each client."""

from dataclasses import dataclass
from typing import final

from overheard.core.defense import BuildModel
from overheard.core.knowledge import KnownFact


@final
@dataclass(frozen=True, slots=True)
class LocalHead(KnownFact):
    """The architecture of a network of which no message has the last layer.

    `Knowledge.build_model` is then None, as most attacks that get a network read all of it.

    Args:
        build_model: builds the architecture; its weights are not used.
        names: the tensors that stay with each client.

    """

    build_model: BuildModel
    names: frozenset[str]

    how_to_get = "a model whose last layer stays with each client"
