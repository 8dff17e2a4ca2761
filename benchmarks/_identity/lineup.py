"""The attacks of the identity benchmark: published, baselines and Overheard's."""

from dataclasses import dataclass, replace
from typing import Any

from _identity.measured import AttackedArm
from overheard.core.attack import Attack
from overheard.linkage.layers import Layer
from overheard.plans.plan import ThreatPlan
from overheard.questions.identity.attacks.metadata import Metadata
from overheard.questions.identity.attacks.reidentify_knn import ReidentifyKnn
from overheard.questions.identity.attacks.reidentify_mlp import ReidentifyMlp
from overheard.questions.identity.attacks.reidentify_svm import ReidentifySvm
from overheard.questions.identity.attacks.reidentify_wccn import ReidentifyWccn
from overheard.questions.same_sender.attacks.link_siamese import LinkSiamese
from overheard.questions.same_sender.attacks.link_wccn import LinkWccn
from overheard.questions.same_sender.attacks.metadata_link import MetadataLink

# Any: attacks may be on different questions.
Attacks = tuple[Attack[Any], ...]

ONE_UPDATE = ReidentifyWccn(link=False, at_most_one=False)
"""Overheard's attack on each update by itself."""

WITH_LINKING = ReidentifyWccn()
"""Overheard's attack, which links updates and assigns each user to one sender at most."""

UNASSIGNED = ReidentifyWccn(at_most_one=False)
"""Overheard's attack on lasting senders, without the assignment; there is nothing to link."""


def every_update(attacks: Attacks, *, adapts: bool = False) -> ThreatPlan:
    """Return a threat with a new pseudonym per update, as published."""
    threat = ThreatPlan(attacks=attacks, pseudonyms="round")
    return adapted(threat) if adapts else threat


def every_sender(attacks: Attacks) -> ThreatPlan:
    """Return a threat with lasting names, which combines evidence over rounds."""
    return ThreatPlan(attacks=attacks)


def adapted(threat: ThreatPlan) -> ThreatPlan:
    """Return the threat with an attacker who knows the defenses and simulates them."""
    return threat.model_copy(update={"knows": (*threat.knows, "defenses")})


@dataclass(frozen=True, slots=True)
class Lineup:
    """All attacks of a case; published ones read one layer, Overheard's its own.

    Args:
        layer: the part of an update that published attacks read.
        most_rounds: rounds in which published attacks simulate known users, if they do.
        links: whether linking attacks are included.
        epochs: epochs of the published attack's network, which its paper does not state.

    """

    layer: Layer = -1
    most_rounds: int = 24
    links: bool = False
    epochs: int = 100

    @property
    def threats(self) -> tuple[ThreatPlan, ...]:
        """The threats on single updates and on lasting senders."""
        return (self._updates, self._senders)

    @property
    def published(self) -> AttackedArm:
        """The published attack as published: with shadow devices, on single updates."""
        return AttackedArm(self._updates, self._published)

    @property
    def ours(self) -> AttackedArm:
        """Overheard's attack on one update, as the published attacks are."""
        return AttackedArm(self._updates, ONE_UPDATE)

    @property
    def ours_linked(self) -> AttackedArm:
        """Overheard's attack with linking and one-to-one assignment."""
        return AttackedArm(self._updates, WITH_LINKING)

    @property
    def ours_over_rounds(self) -> AttackedArm:
        """Overheard's attack on lasting senders, each by its own updates alone."""
        return AttackedArm(self._senders, UNASSIGNED)

    @property
    def svms(self) -> tuple[AttackedArm, ...]:
        """The support vector machines, by source of known updates."""
        return tuple(
            AttackedArm(self._updates, attack)
            for attack in self._updates.attacks
            if isinstance(attack, ReidentifySvm)
        )

    @property
    def _published(self) -> ReidentifyMlp:
        return ReidentifyMlp("shadow", self.layer, epochs=self.epochs)

    @property
    def _updates(self) -> ThreatPlan:
        rounds = self.most_rounds
        linking: Attacks = (LinkWccn(), LinkSiamese(layer=self.layer), MetadataLink())
        return every_update(
            (
                self._published,
                replace(self._published, updates="simulated", most_rounds=rounds),
                ReidentifySvm("shadow", self.layer),
                ReidentifySvm("simulated", self.layer, most_rounds=rounds),
                ReidentifyKnn("simulated", self.layer, most_rounds=rounds),
                ONE_UPDATE,
                WITH_LINKING,
                replace(ONE_UPDATE, updates="shadow"),
                Metadata(),
                *(linking if self.links else ()),
            )
        )

    @property
    def _senders(self) -> ThreatPlan:
        return every_sender(
            (
                self._published,
                ReidentifySvm("shadow", self.layer),
                UNASSIGNED,
                WITH_LINKING,
                Metadata(),
            )
        )
