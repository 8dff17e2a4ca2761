"""The re-identification attacks of the experiments."""

from typing import Any

from overheard.core.attack import Attack
from overheard.linkage.known_updates import UpdateSource
from overheard.linkage.layers import Layer
from overheard.questions.identity.attacks.reidentify_knn import ReidentifyKnn
from overheard.questions.identity.attacks.reidentify_mlp import ReidentifyMlp
from overheard.questions.identity.attacks.reidentify_svm import ReidentifySvm
from overheard.questions.identity.attacks.reidentify_wccn import (
    SIMULATED_ROUNDS,
    ReidentifyWccn,
)
from overheard_studies.deanonymization.scenarios import IdentityScenario

UPDATE_SOURCES: tuple[UpdateSource, ...] = ("shadow", "simulated")
"""Sources of known updates: the published one, then the realistic one."""

PUBLISHED_ATTACKS = (ReidentifyMlp, ReidentifySvm, ReidentifyKnn)
"""The paper's three attacks; the one it proposes comes first."""

IDENTITY_ATTACKS = (*PUBLISHED_ATTACKS, ReidentifyWccn)
"""All re-identification attacks; Overheard's own, which links updates, comes last."""


# Any: each attack has its own claim type.
def build_identity_attacks(
    scenario: IdentityScenario, source: UpdateSource
) -> tuple[Attack[Any], ...]:
    """Build all re-identification attacks with known updates from one source."""
    published_attacks = (
        kind(updates=source, layer=scenario.layer, most_rounds=scenario.most_rounds)
        for kind in PUBLISHED_ATTACKS
    )
    return (*published_attacks, build_wccn_attack(scenario, source))


def build_wccn_attack(
    scenario: IdentityScenario, source: UpdateSource, *, is_linking: bool = True
) -> ReidentifyWccn:
    """Build Overheard's attack, which selects layers itself and trains users in few rounds.

    Args:
        scenario: scenario that is attacked.
        source: source of known updates.
        is_linking: whether it links updates and assigns users one to one; without both a claim
            rests on the target's own updates alone, as those of the paper's attacks do.

    """
    return ReidentifyWccn(
        updates=source,
        most_rounds=min(SIMULATED_ROUNDS, scenario.most_rounds),
        link=is_linking,
        at_most_one=is_linking,
    )


def build_published_attack(
    scenario: IdentityScenario,
    source: UpdateSource,
    layer: Layer | None = None,
    *,
    pieces: int = 1,
) -> ReidentifyMlp:
    """Build the attack that the paper proposes.

    Args:
        scenario: scenario that is attacked.
        source: source of known updates.
        layer: part of an update that it reads; None = the scenario's.
        pieces: number of chunks into which it splits a prior that it trains on.

    """
    return ReidentifyMlp(
        updates=source,
        layer=scenario.layer if layer is None else layer,
        pieces=pieces,
        most_rounds=scenario.most_rounds,
    )
