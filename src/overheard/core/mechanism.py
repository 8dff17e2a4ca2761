"""What a defense that adds noise says of its mechanism, for an accountant to check."""

import math
from dataclasses import dataclass
from typing import Literal, final

from overheard.core.parties import SERVER, Party

Unit = Literal["client", "record"]
"""Whose data may change without its showing: all of one client's, or one record of them."""

StatedFor = Literal["run", "round"]
"""What an epsilon is stated for: all rounds together, or each message by itself."""

UNENFORCED = "its noise is calibrated to a sensitivity that nobody enforces"
"""Why noise of any size covers nothing."""


@final
@dataclass(frozen=True, slots=True)
class Mechanism:
    """A Gaussian on what one unit of privacy may move.

    Args:
        noise_multiplier: standard deviation of the noise, in units of `clip`; 0 = none.
        clip: the L2 norm to which the noise is calibrated.
        delta: of the guarantee (0..1).
        noised_at: who adds the noise; whoever this party trusts reads all without it.
        bounded_at: who enforces `clip`; None = nobody.
        moves: how far a change of one unit moves what is noised, in units of `clip`: 2 where
            one is replaced by another, 1 where one is added or left out.
        unit: whose data may change.
        steps: how often noise is drawn in a round, such as once a local step; 1 = once an
            update or mean.
        is_drawn: whether it counts that nobody but the server knows who was asked in a round.
        stated: the epsilon that was configured or promised; None = none was.
        stated_for: what that epsilon is about.
        unproven: why no accounting covers the mechanism, as of a sparse vector that is
            accounted for wrongly; "" = Gaussian composition does.

    """

    noise_multiplier: float
    clip: float
    delta: float
    noised_at: Literal["client", "server"]
    bounded_at: Literal["client", "server"] | None
    moves: float = 2.0
    unit: Unit = "client"
    steps: int = 1
    is_drawn: bool = False
    stated: float | None = None
    stated_for: StatedFor = "run"
    unproven: str = ""

    def __post_init__(self) -> None:
        """Refuse what is no mechanism."""
        positive = self.clip > 0 and self.moves > 0 and self.steps >= 1
        if not positive or not 0 <= self.noise_multiplier < math.inf or not 0 < self.delta < 1:
            raise ValueError(f"no mechanism has such settings: {self}")
        if self.stated is not None and not self.stated >= 0:
            raise ValueError(f"an epsilon is 0 or more, got {self.stated}")

    @property
    def flaw(self) -> str:
        """Why it guarantees nothing to anybody; "" = nothing is known to be wrong with it."""
        if self.unproven:
            return self.unproven
        if self.bounded_at is None:
            return UNENFORCED
        return "" if self.noise_multiplier > 0 else "it adds no noise"

    def covers(self, observers: tuple[Party, ...]) -> bool:
        """Whether these observers, pooling what they read, read nothing before the noise.

        `()` stands for whoever reads the global models and nothing else.
        """
        return self.noised_at == "client" or SERVER not in observers
