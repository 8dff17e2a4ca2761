"""The attacks that tell who sent an update, as the experiments try them."""

from typing import Any

from overheard.core.attack import Attack
from overheard.linkage.layers import Layer
from overheard.linkage.prior_updates import Source
from overheard.papers.deanonymization.world import IdentityScenario
from overheard.questions.identity.attacks.reidentify_knn import ReidentifyKnn
from overheard.questions.identity.attacks.reidentify_mlp import ReidentifyMlp
from overheard.questions.identity.attacks.reidentify_svm import ReidentifySvm
from overheard.questions.identity.attacks.reidentify_wccn import ROUNDS, ReidentifyWccn

SOURCES: tuple[Source, ...] = ("shadow", "simulated")
"""Where labelled updates come from: as published first, then what is realistic."""

PUBLISHED = (ReidentifyMlp, ReidentifySvm, ReidentifyKnn)
"""The paper's three, its own first."""

IDENTIFIERS = (*PUBLISHED, ReidentifyWccn)
"""What is tried wherever these are; ours comes last."""


# Any: an attack answers a question of its own.
def identifiers(world: IdentityScenario, source: Source) -> tuple[Attack[Any], ...]:
    """All of them, with labelled updates from there."""
    of_paper = (
        kind(updates=source, layer=world.layer, most_rounds=world.most_rounds)
        for kind in PUBLISHED
    )
    return (*of_paper, ours(world, source))


def ours(world: IdentityScenario, source: Source) -> ReidentifyWccn:
    """Ours, which chooses layers by itself and needs to train known users in few rounds."""
    return ReidentifyWccn(updates=source, most_rounds=min(ROUNDS, world.most_rounds))


def published(
    world: IdentityScenario, source: Source, layer: Layer | None = None, *, pieces: int = 1
) -> ReidentifyMlp:
    """The one that the paper proposes.

    Args:
        world: that it listens to.
        source: of labelled updates.
        layer: which part of an update it reads; None = as elsewhere in this world.
        pieces: into which it cuts a prior that it trains on.

    """
    return ReidentifyMlp(
        updates=source,
        layer=world.layer if layer is None else layer,
        pieces=pieces,
        most_rounds=world.most_rounds,
    )
