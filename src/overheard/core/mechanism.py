"""The noise mechanism of a defense, as it states it for privacy accounting."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal, final

from annotated_types import Ge, Gt, Le, Lt

from overheard.core.parties import SERVER, Party
from overheard.core.settings import Positive, Settings

PrivacyUnit = Literal["client", "record"]
"""The unit of privacy: all data of one client, or one of its records."""

UNITS: Mapping[PrivacyUnit, str] = {
    "client": "all data of a client",
    "record": "one record of a client",
}
"""Each unit of privacy in words."""

AccountUnit = Literal["record", "user", "client"]
"""What is added or removed: one record, several records of one user, or all of a client."""

PrivacyRelation = Literal["add-or-remove", "replace-one"]
"""How neighboring data sets differ: one unit is added or removed, or replaced by another."""

RELATIONS: Mapping[PrivacyRelation, str] = {
    "add-or-remove": "added or removed",
    "replace-one": "replaced by another",
}
"""Each relation in words that follow a unit of privacy."""

ClientSampling = Literal["none", "fixed", "poisson", "with_replacement"]
"""How the clients of a round are sampled: all of them (or by a rule without chance), a fixed
number of different ones, each by itself with the same probability, or a fixed number of draws
in which a client may occur several times."""

RecordSampling = Literal["none", "fixed", "poisson", "shuffled"]
"""How the records of a step are sampled inside a client: all of them, a batch of a fixed size
drawn anew, each record by itself with the same probability, or batches of a shuffled order, so
that each record occurs once an epoch."""

RECORD_SAMPLINGS: Mapping[RecordSampling, str] = {
    "none": "all records in each step",
    "fixed": "a batch of a fixed size drawn for each step",
    "poisson": "Poisson sampling of records",
    "shuffled": "shuffled batches, each record once an epoch",
}
"""Each sampling of records in words."""

CLIENT_SAMPLINGS: Mapping[ClientSampling, str] = {
    "none": "no sampling of clients",
    "fixed": "a fixed number of clients sampled a round",
    "poisson": "Poisson sampling of clients",
    "with_replacement": "clients sampled with replacement",
}
"""Each sampling of clients in words."""

Site = Literal["client", "server", "protocol"]
"""Where a defense is enforced."""

MEANINGLESS_EPSILON = 50.0
"""Epsilon above which nobody is protected: one client may change odds by a factor of e^50."""

INSTALL_HINT = (
    "computing epsilon requires dp-accounting: pip install '.[dp]' in a checkout of Overheard"
)
"""What to do where no epsilon can be computed."""

EpsilonScope = Literal["run", "round"]
"""What a stated epsilon covers: all rounds together, or one message."""

ClaimStatus = Literal["not stated", "holds", "not confirmed", "false"]
"""Whether a stated epsilon is true for the stated settings. holds: it is at or above an upper
bound of the true epsilon; false: it is below a lower bound; not confirmed: neither is known."""

UNENFORCED_SENSITIVITY = (
    "its noise suits updates whose size is limited by clipping, but nobody clips them"
)
"""The flaw of a mechanism without enforced clipping: no amount of noise protects then."""

REPEATED_EXAMPLES = (
    "a defense of the data repeats examples, so clipping does not bound what one of them adds"
)
"""Why no accounting covers noise for one record if its data are repeated."""


@final
@dataclass(frozen=True, slots=True)
class Mechanism(Settings):
    """A Gaussian mechanism, with its unit of privacy and stated guarantee.

    Args:
        noise_multiplier: standard deviation of the noise, in units of `clip`; 0 = no noise.
        clip: the L2 norm to which the noise is calibrated.
        delta: the delta of the guarantee (0..1).
        noised_at: the party that adds the noise; it sees the values without noise.
        bounded_at: the party that enforces `clip`; None = nobody.
        moves: sensitivity in units of `clip`: 2 if one unit is replaced by another, 1 if one
            unit is added or removed.
        unit: the unit of privacy.
        steps: number of noise draws per round, such as one per local step; 1 = one per update
            or mean.
        is_drawn: whether accounting may use that only the server knows the sampled clients.
            They are sampled once a round, so `steps` must be 1.
        record_sampling: how the records of each step are sampled, for a unit of one record;
            None = not stated.
        record_rate: share of a client's records in a step (1e-9..1); None = all, or not stated.
        is_relation_stated: whether the stated epsilon is known to be for the relation of
            `moves`; False = it may be for a unit that is added or removed.
        stated: the epsilon that was configured or promised; None = none.
        stated_for: what that epsilon covers.
        unproven: why no accounting covers the mechanism, such as a wrongly accounted sparse
            vector technique; its epsilon is then not recomputed. "" = accounting of Gaussian
            noise covers it.

    """

    noise_multiplier: Annotated[float, Ge(0)]
    clip: Annotated[float, Gt(0)]
    delta: Annotated[float, Gt(0), Lt(1)]
    noised_at: Literal["client", "server"]
    bounded_at: Literal["client", "server"] | None
    moves: Annotated[float, Gt(0)] = 2.0
    unit: PrivacyUnit = "client"
    steps: Positive = 1
    is_drawn: bool = False
    stated: Annotated[float, Ge(0)] | None = None
    stated_for: EpsilonScope = "run"
    unproven: str = ""
    record_sampling: RecordSampling | None = None
    record_rate: Annotated[float, Ge(1e-9), Le(1)] | None = None
    is_relation_stated: bool = True

    def check_together(self) -> None:
        """Refuse settings that contradict each other."""
        if self.is_drawn and self.steps > 1:
            raise ValueError(
                "sampling clients once a round is not accounted for with several noise draws a "
                f"round: set is_drawn to False or steps to 1, got {self}"
            )
        if self.record_sampling is not None and self.unit != "record":
            raise ValueError(
                "record_sampling is that of records inside a client: set unit to 'record'"
            )
        is_sampled = self.record_sampling not in (None, "none")
        if is_sampled != (self.record_rate is not None):
            raise ValueError(
                "record_rate is the share of a client's records in a step: state it with "
                "record_sampling 'poisson', 'fixed' or 'shuffled', and only then"
            )

    @property
    def relation(self) -> PrivacyRelation:
        """Which neighboring data sets epsilon compares, by the sensitivity."""
        return "replace-one" if self.moves >= 2 else "add-or-remove"

    @property
    def relation_words(self) -> str:
        """How neighboring data sets differ, in words that follow the unit of privacy.

        Shuffled batches of equal size move other records if one is taken out, so two batches
        may differ. One batch alone differs if nothing takes its place.
        """
        words = RELATIONS[self.relation]
        if self.record_sampling == "shuffled" and self.relation == "add-or-remove":
            return f"{words} (its place in the batches stays empty)"
        return words

    @property
    def flaw(self) -> str:
        """Why the mechanism guarantees nothing to anybody; "" = no flaw is known."""
        if self.bounded_at is None:
            return UNENFORCED_SENSITIVITY
        return "" if self.noise_multiplier > 0 else "it adds no noise"

    def in_round(self, epochs: int, *, repeats_examples: bool = False) -> "Mechanism":
        """Return the mechanism of a round, given that of an epoch if it samples records.

        Args:
            epochs: the most epochs of a client in a round.
            repeats_examples: whether a defense of the data may repeat examples.

        """
        if self.record_sampling is None:
            return self
        unproven = self.unproven or (REPEATED_EXAMPLES if repeats_examples else "")
        return replace(self, steps=self.steps * epochs, unproven=unproven)

    def covers(self, observers: tuple[Party, ...]) -> bool:
        """Return whether colluding observers read only noised values.

        `()` stands for an observer who reads only the global models.
        """
        return self.noised_at == "client" or SERVER not in observers
