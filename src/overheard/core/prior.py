"""What an attacker takes clients to be like before it listens."""

from dataclasses import dataclass

from overheard.core.recipe import Recipe
from overheard.core.split import Split


@dataclass(frozen=True, slots=True)
class Prior:
    """What an attacker takes clients to be like before it listens.

    Its virtual clients are drawn from it. What it holds wrongly it cannot unlearn by itself: an
    estimate for clients of another kind is biased, and intervals are too narrow.

    Args:
        splits: how labels may be shared out; each is as likely as the others. () = the bank's
            own mixture, from one class a client to all alike.
        sizes: the smallest and the largest number of examples that a client may hold, all
            scales between equally likely; None = as the sizes that are told in clear, or
            `simulation.sizes.HIDDEN_SIZES` where none is.
        recipes: how clients may train, each as likely, for one who does not know the recipe.
        resampled: whether a virtual client draws its examples with replacement (bootstrap,
            Efron 1979): virtual clients then differ by their examples as clients drawn from one
            population do, at the price that each meets fewer different ones. Else it takes none
            twice before all were taken once.

    """

    splits: tuple[Split, ...] = ()
    sizes: tuple[int, int] | None = None
    recipes: tuple[Recipe, ...] = ()
    resampled: bool = False

    def __post_init__(self) -> None:
        """Refuse sizes that are none."""
        if self.sizes is not None and not 1 <= self.sizes[0] <= self.sizes[1]:
            raise ValueError(f"sizes must be 1 or more, smallest first, got {self.sizes}")
