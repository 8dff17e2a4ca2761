"""Who listens to a federation of people: the published attacks, the baselines, ours."""

from dataclasses import dataclass, replace
from typing import Any

from _identity.measured import Place
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

# Any: an attack answers a question of its own.
Attacks = tuple[Attack[Any], ...]


def every_update(attacks: Attacks, *, adapts: bool = False) -> ThreatPlan:
    """Each update bears a name of its own, as published."""
    threat = ThreatPlan(attacks=attacks, pseudonyms="round")
    return adapted(threat) if adapts else threat


def every_sender(attacks: Attacks) -> ThreatPlan:
    """A sender's name lasts, so that evidence of its rounds adds up."""
    return ThreatPlan(attacks=attacks)


def adapted(threat: ThreatPlan) -> ThreatPlan:
    """The same by who knows the defenses, and trains known users behind them."""
    return threat.model_copy(update={"knows": (*threat.knows, "defenses")})


@dataclass(frozen=True, slots=True)
class Lineup:
    """All of them, on one layer; ours reads layers of its own.

    Args:
        layer: which part of an update published attacks read.
        most_rounds: in which published attacks train known users, where they do.
        links: whether updates are linked besides.
        epochs: of the published attack's network, which its paper does not tell.

    """

    layer: Layer = -1
    most_rounds: int = 24
    links: bool = False
    epochs: int = 100

    @property
    def threats(self) -> tuple[ThreatPlan, ...]:
        """To every update by itself, and to what a sender sends together."""
        return (self._updates, self._senders)

    @property
    def published(self) -> Place:
        """The published attack as published: on shadow devices, each update by itself."""
        return Place(self._updates, self._published)

    @property
    def ours(self) -> Place:
        """Ours, by simulated updates, each update by itself."""
        return Place(self._updates, ReidentifyWccn())

    @property
    def ours_over_rounds(self) -> Place:
        """The same on senders."""
        return Place(self._senders, ReidentifyWccn())

    @property
    def svms(self) -> tuple[Place, ...]:
        """The support vectors, by either source of labelled updates."""
        return tuple(
            Place(self._updates, attack)
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
                ReidentifyWccn(),
                ReidentifyWccn("shadow"),
                Metadata(),
                *(linking if self.links else ()),
            )
        )

    @property
    def _senders(self) -> ThreatPlan:
        return every_sender(
            (self._published, ReidentifySvm("shadow", self.layer), ReidentifyWccn(), Metadata())
        )
