"""The declared settings of each attack, from which tuning chooses."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from overheard.core.attack import Attack
from overheard.linkage.layers import Layer
from overheard.questions.identity.attacks.match_siamese import MatchSiamese
from overheard.questions.identity.attacks.metadata import Metadata
from overheard.questions.identity.attacks.reidentify_knn import ReidentifyKnn
from overheard.questions.identity.attacks.reidentify_mlp import ReidentifyMlp
from overheard.questions.identity.attacks.reidentify_svm import ReidentifySvm
from overheard.questions.identity.attacks.reidentify_wccn import ReidentifyWccn
from overheard.questions.identity.claim import Identity

IdentityAttack = Attack[Identity]

LAYERS = (-1, "all")
"""What a rival may read of an update: the last layer or all layers."""

CUTS = ((1, 24), (4, 6))
"""Pieces of each prior, and rounds in which each piece is trained: 24 trainings a user."""

OUR_LAYERS: tuple[tuple[Layer, ...] | None, ...] = (("all",), None)
"""What Overheard's attack may read; None = the last bias, the last layer and all layers."""

OURS = "reidentify_wccn"

METADATA = "metadata"
"""It reads numbers of examples and losses, which no other attack of the grids reads."""


def _settings(attack: Any, cuts: Iterable[tuple[int, int]]) -> tuple[Any, ...]:
    """Return a rival with every cut of the priors and every layer."""
    return tuple(
        replace(attack, pieces=pieces, most_rounds=rounds, layer=layer)
        for (pieces, rounds), layer in product(cuts, LAYERS)
    )


GRIDS: Mapping[str, tuple[IdentityAttack, ...]] = {
    "reidentify_mlp": _settings(ReidentifyMlp(), CUTS),
    "reidentify_svm": _settings(ReidentifySvm(), CUTS),
    "reidentify_knn": _settings(ReidentifyKnn(), CUTS),
    "match_siamese": _settings(MatchSiamese(), CUTS),
    METADATA: tuple(
        Metadata(pieces=pieces, most_rounds=24 // pieces) for pieces in (1, 2, 4, 8)
    ),
    # It compares the pieces of a prior, so it needs two.
    OURS: tuple(
        ReidentifyWccn(
            layers=layers, pieces=pieces, most_rounds=rounds, link=False, at_most_one=False
        )
        for (pieces, rounds), layers in product(((2, 12), (4, 6)), OUR_LAYERS)
    ),
}
"""By attack, four settings with equal budgets of simulation."""

AS_PUBLISHED: tuple[IdentityAttack, ...] = (
    ReidentifyMlp("shadow"),
    ReidentifySvm("shadow"),
    ReidentifyKnn("shadow"),
)
"""The paper's attacks with its own settings: shadow devices and the last layer, not tuned."""


def with_linking(attack: ReidentifyWccn) -> ReidentifyWccn:
    """Return Overheard's attack with linking and one-to-one assignment."""
    return replace(attack, link=True, at_most_one=True)
