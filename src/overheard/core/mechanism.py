"""The noise mechanism of a defense, as it states it for privacy accounting."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, final

from overheard.core.parties import SERVER, Party

PrivacyUnit = Literal["client", "record"]
"""The unit of privacy: all data of one client, or one of its records."""

UNITS: Mapping[PrivacyUnit, str] = {
    "client": "all data of a client",
    "record": "one record of a client",
}
"""Each unit of privacy in words."""

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

UNENFORCED_SENSITIVITY = (
    "its noise suits updates whose size is limited by clipping, but nobody clips them"
)
"""The flaw of a mechanism without enforced clipping: no amount of noise protects then."""


@final
@dataclass(frozen=True, slots=True)
class Mechanism:
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
        stated: the epsilon that was configured or promised; None = none.
        stated_for: what that epsilon covers.
        unproven: why no accounting covers the mechanism, such as a wrongly accounted sparse
            vector technique; "" = Gaussian composition covers it.

    """

    noise_multiplier: float
    clip: float
    delta: float
    noised_at: Literal["client", "server"]
    bounded_at: Literal["client", "server"] | None
    moves: float = 2.0
    unit: PrivacyUnit = "client"
    steps: int = 1
    is_drawn: bool = False
    stated: float | None = None
    stated_for: EpsilonScope = "run"
    unproven: str = ""

    def __post_init__(self) -> None:
        """Check the ranges of the settings."""
        positive = self.clip > 0 and self.moves > 0 and self.steps >= 1
        if not positive or not 0 <= self.noise_multiplier < math.inf or not 0 < self.delta < 1:
            raise ValueError(f"settings out of range: {self}")
        if self.is_drawn and self.steps > 1:
            raise ValueError(
                "sampling clients once a round is not accounted for with several noise draws a "
                f"round: set is_drawn to False or steps to 1, got {self}"
            )
        if self.stated is not None and not self.stated >= 0:
            raise ValueError(f"an epsilon must be 0 or more, got {self.stated}")

    @property
    def flaw(self) -> str:
        """Why the mechanism guarantees nothing to anybody; "" = no flaw is known."""
        if self.unproven:
            return self.unproven
        if self.bounded_at is None:
            return UNENFORCED_SENSITIVITY
        return "" if self.noise_multiplier > 0 else "it adds no noise"

    def covers(self, observers: tuple[Party, ...]) -> bool:
        """Return whether colluding observers read only noised values.

        `()` stands for an observer who reads only the global models.
        """
        return self.noised_at == "client" or SERVER not in observers
