"""An attacker's assumptions about clients, made without its view."""

from dataclasses import dataclass

from overheard.core.recipe import Recipe
from overheard.core.split import Split


@dataclass(frozen=True, slots=True)
class Prior:
    """An attacker's assumptions about clients, made without its view.

    Virtual clients are drawn from it. Wrong assumptions bias the estimates and make intervals
    too narrow.

    Args:
        splits: possible splits of labels over clients, all equally likely; () = the default
            mixture of the simulation, from one class per client to equal shares.
        sizes: smallest and largest number of examples of a client, log-uniform in between;
            None = the sizes sent in clear text, else `simulation.client_sizes.DEFAULT_SIZES`.
        recipes: possible recipes, all equally likely, for an attacker without the recipe.
        with_replacement: whether a virtual client draws examples with replacement (bootstrap,
            Efron 1979). Virtual clients then differ by their examples as clients drawn from one
            population do, but each has fewer distinct examples. Otherwise no example is drawn
            again before all were drawn.

    """

    splits: tuple[Split, ...] = ()
    sizes: tuple[int, int] | None = None
    recipes: tuple[Recipe, ...] = ()
    with_replacement: bool = False

    def __post_init__(self) -> None:
        """Check that sizes are an ascending range from 1."""
        if self.sizes is not None and not 1 <= self.sizes[0] <= self.sizes[1]:
            raise ValueError(f"sizes must be 1 or more, smallest first, got {self.sizes}")
