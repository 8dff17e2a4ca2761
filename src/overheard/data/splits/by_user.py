"""A split in which each client is one user of the data set."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.split import Rows, Split
from overheard.data.partition.check_pool import check_pool


@final
@dataclass(frozen=True, slots=True)
class ByUser(Split):
    """Each client holds examples of one user only.

    Sizes are upper bounds: a client holds all examples of its user, or a random choice if
    there are more. If there are more users than clients, they are chosen at random. Clients
    are in random order, so that the number of a client does not tell its user.
    """

    name: ClassVar[str] = "by_user"
    source: ClassVar[str] = "Caldas et al. 2018 (LEAF, arXiv:1812.01097): natural partition"
    has_one_user_per_client: ClassVar[bool] = True
    has_own_sizes: ClassVar[bool] = True

    def assign(
        self,
        labels: Int[Tensor, " examples"],
        users: Int[Tensor, " examples"] | None,
        sizes: Int[Tensor, " clients"],
        classes: int,
        seed: Seed,
    ) -> tuple[Rows, ...]:
        """Choose the users, then their examples."""
        if users is None:
            raise PlanError("by_user: the data set names no users: choose one that does")
        check_pool(labels, sizes.clamp(max=1), classes)
        present = torch.from_numpy(np.unique(users.numpy()))
        if len(present) < len(sizes):
            raise PlanError(
                f"by_user: {len(sizes)} clients but {len(present)} users: take at most as many "
                "clients as there are users"
            )
        order = torch.randperm(len(present), generator=seed.child("users").generator())
        chosen = present[order[: len(sizes)]]
        client_rows = []
        for number, (user, size) in enumerate(
            zip(chosen.tolist(), sizes.tolist(), strict=True)
        ):
            rows = (users == user).nonzero().flatten()
            shuffle = seed.child("client", number).generator()
            client_rows.append(rows[torch.randperm(len(rows), generator=shuffle)][:size])
        return tuple(client_rows)
