"""Splits that choose label counts first, and then any examples of those labels."""

from abc import abstractmethod

from jaxtyping import Int
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.core.split import Rows, Split
from overheard.data.draws import draw_stratified


class LabelSplit(Split):
    """A split that first draws how many examples of each label each client gets.

    Redrawn partitions need the counts alone, which take a fraction of the time.
    """

    @abstractmethod
    def draw_label_counts(
        self,
        labels: Int[Tensor, " examples"],
        sizes: Int[Tensor, " clients"],
        classes: int,
        seed: Seed,
    ) -> Int[Tensor, "clients classes"]:
        """Return the label counts of the rows that `assign` returns for the same arguments.

        Raises:
            PlanError: if the pool cannot be partitioned like this.

        """

    def assign(
        self,
        labels: Int[Tensor, " examples"],
        users: Int[Tensor, " examples"] | None,
        sizes: Int[Tensor, " clients"],
        classes: int,
        seed: Seed,
    ) -> tuple[Rows, ...]:
        """Draw the label counts, then random examples of each label."""
        counts = self.draw_label_counts(labels, sizes, classes, seed)
        return draw_stratified(labels, counts, classes, seed.child("rows"))
