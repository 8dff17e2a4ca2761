"""The attacks that tell who sent an update, as the experiments try them."""

from typing import Any

from overheard.attacks.reidentify_knn import ReidentifyKnn
from overheard.attacks.reidentify_mlp import ReidentifyMlp
from overheard.attacks.reidentify_svm import ReidentifySvm
from overheard.bank.layers import Layer
from overheard.bank.prior_updates import Source
from overheard.core.attack import Attack
from overheard.papers.deanonymization.world import World

SOURCES: tuple[Source, ...] = ("shadow", "simulated")
"""Where labelled updates come from: as published first, then what is realistic."""

IDENTIFIERS = (ReidentifyMlp, ReidentifySvm, ReidentifyKnn)
"""The paper's three, its own first. Whatever else is to be tried wherever these are comes after
them; it takes `updates`, `layer` and `most_rounds`."""


# Any: an attack answers a question of its own.
def identifiers(world: World, source: Source) -> tuple[Attack[Any], ...]:
    """All of them, with labelled updates from there."""
    return tuple(
        kind(updates=source, layer=world.layer, most_rounds=world.most_rounds)
        for kind in IDENTIFIERS
    )


def published(world: World, source: Source, layer: Layer | None = None) -> ReidentifyMlp:
    """The one that the paper proposes.

    Args:
        world: that it listens to.
        source: of labelled updates.
        layer: which part of an update it reads; None = as elsewhere in this world.

    """
    return ReidentifyMlp(
        updates=source,
        layer=world.layer if layer is None else layer,
        most_rounds=world.most_rounds,
    )
