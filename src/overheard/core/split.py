"""The contract of a split: which client holds which examples."""

from abc import ABC, abstractmethod
from typing import ClassVar

from jaxtyping import Int
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.core.settings import Settings

Rows = Int[Tensor, " _rows"]
"""Indices of examples in a pool; the axis differs between clients, so its name is not bound."""


class Split(Settings, ABC):
    """Partitions a pool of examples among clients.

    A concrete split is a final frozen dataclass: its fields are its settings.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    """Where the idea comes from: authors, year, section."""
    has_one_user_per_client: ClassVar[bool] = False
    """True if each client stands for one user and holds examples of that user alone."""
    has_own_sizes: ClassVar[bool] = False
    """True if clients hold what the split gives them, up to the sizes of the plan."""
    is_exchangeable: ClassVar[bool] = False
    """True if clients have one label distribution and get examples of a label at random."""

    draws_labels_at_random: ClassVar[bool] = False
    """True if a client gets any examples of a label with the same probability."""
    has_fixed_shares: ClassVar[bool] = False
    """True if its settings state the label shares of each client, so that none are drawn."""
    needs_classes: ClassVar[bool] = False
    """True if clients differ by the classes that they hold, so that examples must have some."""
    draws_labels_in_turn: ClassVar[bool] = False
    """True if a label that one client gets is less likely for the next ones, and labels are
    interchangeable. False: the label shares of a client are drawn regardless of other clients,
    as long as the pool has enough examples."""

    @abstractmethod
    def assign(
        self,
        labels: Int[Tensor, " examples"],
        users: Int[Tensor, " examples"] | None,
        sizes: Int[Tensor, " clients"],
        classes: int,
        seed: Seed,
    ) -> tuple[Rows, ...]:
        """Return the rows of the pool for each client: `sizes[k]` for client k, none twice.

        A split with `has_own_sizes` takes the sizes as upper bounds.

        Args:
            labels: the labels of the pool.
            users: the users of the pool; None where unknown.
            sizes: number of examples of each client.
            classes: number of classes of the task; 1 if its examples have none.
            seed: equal seeds give equal rows.

        Raises:
            PlanError: if the pool cannot be partitioned like this.

        """
