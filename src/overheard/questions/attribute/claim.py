"""The claim about an attribute of the user behind a target."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from overheard.core.claims import Claim, check_candidates
from overheard.core.errors import ClaimError


@dataclass(frozen=True, slots=True)
class Attribute(Claim):
    """The value of an attribute of the user behind a target.

    Args:
        attribute: name of the attribute, such as "gender".
        values: two or more possible values, all different.
        probabilities: probability of each value, 0 or more, with sum 1.

    """

    attribute: str
    values: tuple[str, ...]
    probabilities: Float[Tensor, " values"]

    def __post_init__(self) -> None:
        """Refuse invalid values or probabilities."""
        check_candidates(self.values, self.probabilities)
        total = float(self.probabilities.sum())
        if len(self.values) < 2 or float(self.probabilities.min()) < 0 or abs(total - 1) > 1e-4:
            got = dict(zip(self.values, self.probabilities.tolist(), strict=True))
            raise ClaimError(
                "an attribute must have 2 or more values with probabilities that are 0 or more "
                f"and sum to 1, got {got}"
            )

    def numbers(self) -> tuple[float, ...]:
        """Return the probability of each value."""
        return tuple(self.probabilities.tolist())

    def candidates(self) -> tuple[str, ...]:
        """Return the values."""
        return self.values
