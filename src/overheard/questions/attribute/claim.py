"""What an attack may claim of an attribute of the person behind its target."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from overheard.core.claims import Claim, check_choice
from overheard.core.errors import ClaimError


@dataclass(frozen=True, slots=True)
class Attribute(Claim):
    """Which value an attribute of the person behind a target has.

    Args:
        attribute: which, such as "gender".
        values: that it may have, each once, two or more.
        probabilities: of each, 0 or more and 1 together.

    """

    attribute: str
    values: tuple[str, ...]
    probabilities: Float[Tensor, " values"]

    def __post_init__(self) -> None:
        """Refuse what is no choice between values."""
        check_choice(self.values, self.probabilities)
        total = float(self.probabilities.sum())
        if len(self.values) < 2 or float(self.probabilities.min()) < 0 or abs(total - 1) > 1e-4:
            raise ClaimError(
                "an attribute has 2 values or more, whose probabilities are 0 or more and sum "
                f"to 1, got {dict(zip(self.values, self.probabilities.tolist(), strict=True))}"
            )

    def numbers(self) -> tuple[float, ...]:
        """The probability of each value."""
        return tuple(self.probabilities.tolist())

    def candidates(self) -> tuple[str, ...]:
        """The values."""
        return self.values
