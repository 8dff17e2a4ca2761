"""How an audit bounds epsilon from canaries, and whether that was stated before the run."""

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class BoundSettings:
    """How an audit bounds epsilon from canaries; see `plans.epsilon_plan.EpsilonPlan`.

    Args:
        attack: name of the attack whose scores are used; "" = chosen on half of the canaries.
        guesses: share of the canaries that it guesses; None = by their number.
        level: probability that any true claim of the audit is called violated.
        digest: digest of these choices; "" = not known.
        stated_digest: the digest that was stated when the canaries were drawn; None = the
            canaries are drawn by the audit itself.

    """

    attack: str = ""
    guesses: float | None = None
    level: float = 0.05
    digest: str = ""
    stated_digest: str | None = None

    @property
    def are_as_stated(self) -> bool:
        """Whether nothing was changed since the canaries were drawn."""
        return self.stated_digest in (None, self.digest)


USUAL_BOUND = BoundSettings()
"""What a plan says that says nothing."""
