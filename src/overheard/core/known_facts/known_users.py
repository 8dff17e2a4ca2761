"""What an attacker knows of single users besides its view."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import final

from jaxtyping import Float
from torch import Tensor

from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge, KnownFact
from overheard.core.parties import Party

NO_PRIOR_EXAMPLES: Mapping[str, Examples] = MappingProxyType({})
NO_SHADOW_DEVICES: Mapping[Party, str] = MappingProxyType({})
NO_EMBEDDINGS: Mapping[str, Tensor] = MappingProxyType({})
NO_ATTRIBUTES: Mapping[str, Mapping[str, str]] = MappingProxyType({})


@final
@dataclass(frozen=True, slots=True)
class KnownUsers(KnownFact):
    """What an attacker knows of single users, by user name.

    Its examples are disjoint from clients' and test examples.

    Args:
        prior_examples: prior examples of each user that the attacker may name as a candidate.
            Their order is chronological or random, so that earlier chunks relate to later ones
            as all of them relate to the private examples. A user need not take part in the run.
        holdout: prior examples of users who take no part, as examples of unknown users.
        shadow_devices: shadow devices by party, each with the user above whose prior examples
            it trains on in the run. Their updates belong to no user.
        embeddings: one vector per user above, from another modality than the examples.
        attributes: values of sensitive attributes, by attribute and user above.

    """

    prior_examples: Mapping[str, Examples] = field(default_factory=lambda: NO_PRIOR_EXAMPLES)
    holdout: Mapping[str, Examples] = field(default_factory=lambda: NO_PRIOR_EXAMPLES)
    shadow_devices: Mapping[Party, str] = field(default_factory=lambda: NO_SHADOW_DEVICES)
    embeddings: Mapping[str, Float[Tensor, " dims"]] = field(
        default_factory=lambda: NO_EMBEDDINGS
    )
    attributes: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: NO_ATTRIBUTES)

    how_to_get = "prior examples of two users or more (data.people)"

    @staticmethod
    def of(knowledge: Knowledge) -> "KnownUsers":
        """Return what is known of single users, which may be nothing."""
        return knowledge.facts.get(KnownUsers) or KnownUsers()

    def __post_init__(self) -> None:
        """Check that priors and holdout are disjoint and contain every user named."""
        both = self.prior_examples.keys() & self.holdout.keys()
        if both:
            raise ValueError(f"users must not be in both priors and holdout: {sorted(both)}")
        known = self.prior_examples.keys() | self.holdout.keys()
        named = {*self.shadow_devices.values(), *self.embeddings}.union(
            *self.attributes.values()
        )
        if named - known:
            raise ValueError(f"users without prior examples: {sorted(named - known)}; add some")

    def all_prior_examples(self) -> dict[str, Examples]:
        """Return the prior examples of all users: candidates first, then holdout users."""
        return {**self.prior_examples, **self.holdout}
