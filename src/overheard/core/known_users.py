"""What an attacker knows beforehand of single users."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from jaxtyping import Float
from torch import Tensor

from overheard.core.examples import Examples
from overheard.core.parties import Party

NOBODY: Mapping[str, Examples] = MappingProxyType({})
NO_DEVICES: Mapping[Party, str] = MappingProxyType({})
NO_EMBEDDINGS: Mapping[str, Tensor] = MappingProxyType({})
NO_ATTRIBUTES: Mapping[str, Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class KnownUsers:
    """What an attacker knows beforehand of single users, by name.

    No example of it is held by any client, or stands in the test.

    Args:
        priors: prior examples of each user whom the attacker may name, in such an order that
            an earlier piece is to a later one what all of them are to private ones, as far as
            the attacker can tell: the earliest first, or by chance. A user may send nothing.
        holdout: the same of users who take no part: what a user looks like whom it does not
            know.
        devices: shadow devices, on which the attacker lets prior examples take part in the
            run: whom of the above each plays. Their updates are those of no user.
        embeddings: what is known of the users above in another modality than that of the
            examples, as one vector each.
        attributes: values of sensitive attributes, by attribute and user, of the users above.

    """

    priors: Mapping[str, Examples] = field(default_factory=lambda: NOBODY)
    holdout: Mapping[str, Examples] = field(default_factory=lambda: NOBODY)
    devices: Mapping[Party, str] = field(default_factory=lambda: NO_DEVICES)
    embeddings: Mapping[str, Float[Tensor, " dims"]] = field(
        default_factory=lambda: NO_EMBEDDINGS
    )
    attributes: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: NO_ATTRIBUTES)

    def __post_init__(self) -> None:
        """Refuse users who are known and unknown at once, and devices that play nobody."""
        both = self.priors.keys() & self.holdout.keys()
        if both:
            raise ValueError(f"holdout users are none of those with priors, got {sorted(both)}")
        known = self.priors.keys() | self.holdout.keys()
        told = {*self.devices.values(), *self.embeddings}.union(*self.attributes.values())
        if told - known:
            raise ValueError(f"nothing is known of {sorted(told - known)}: give prior examples")

    def examples(self) -> dict[str, Examples]:
        """Prior examples of everyone: first whom the attacker may name, then the others."""
        return {**self.priors, **self.holdout}
