"""A split by a partitioner of flwr-datasets, which a Flower app has already."""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from jaxtyping import Int
from torch import Tensor

from overheard.core.custom_code.builder_arguments import Argument, bind_arguments
from overheard.core.custom_code.failure import describe_failure
from overheard.core.custom_code.reference import REFERENCE, OutsideName, import_function
from overheard.core.errors import PlanError
from overheard.core.seeds import Seed
from overheard.core.split import Rows, Split
from overheard.data.partition.check_pool import check_pool

LABEL, USER, ROW = "label", "user", "row"
"""The columns of the table that a partitioner divides."""

SEED = "seed"
"""The argument of a partitioner that the seed of a run sets, unless the plan does."""

DEFAULT = "flwr_datasets.partitioner:IidPartitioner"


@final
@dataclass(frozen=True, slots=True)
class FlwrPartitioner(Split):
    """Each client is a partition of a partitioner of flwr-datasets.

    The partitioner gets a table with the columns `label` (numbers of classes) and, if the data
    name users, `user`, in random order. Sizes are upper bounds: a client holds all examples of
    its partition, or a random choice if there are more. If there are more partitions than
    clients, they are chosen at random. Clients are in random order.

    Args:
        reference: "package.module:name" of a partitioner's class, or of a function that returns
            a partitioner. It is run, so name only code that you trust.
        arguments: what it takes, such as [["num_partitions", 10], ["partition_by", "label"],
            ["alpha", 0.5]]. `num_partitions` is the number of clients, and `seed` that of the
            run, unless they are given.

    """

    reference: OutsideName = DEFAULT
    arguments: tuple[Argument, ...] = ()

    name: ClassVar[str] = "partitioner"
    source: ClassVar[str] = "Flower Labs: flwr-datasets, flwr_datasets.partitioner"
    has_own_sizes: ClassVar[bool] = True

    def check_together(self) -> None:
        """Refuse a text that is not a reference to code."""
        if not REFERENCE.fullmatch(self.reference):
            raise PlanError(
                "partitioner: reference is given as 'package.module:name', got "
                f"{self.reference!r}"
            )

    def assign(
        self,
        labels: Int[Tensor, " examples"],
        users: Int[Tensor, " examples"] | None,
        sizes: Int[Tensor, " clients"],
        classes: int,
        seed: Seed,
    ) -> tuple[Rows, ...]:
        """Let the partitioner divide the pool, and choose partitions and examples of them."""
        check_pool(labels, sizes.clamp(max=1), classes)
        partitions = self._partitions(labels, users, len(sizes), seed)
        if len(partitions) < len(sizes):
            raise PlanError(
                f"partitioner: {len(sizes)} clients but {len(partitions)} partitions with "
                f"examples of {self.reference}: take at most as many clients"
            )
        order = torch.randperm(len(partitions), generator=seed.child("clients").generator())
        chosen = [partitions[place] for place in order[: len(sizes)].tolist()]
        client_rows = []
        for number, (rows, size) in enumerate(zip(chosen, sizes.tolist(), strict=True)):
            shuffle = seed.child("client", number).generator()
            client_rows.append(rows[torch.randperm(len(rows), generator=shuffle)][:size])
        return tuple(client_rows)

    def _partitions(
        self,
        labels: Int[Tensor, " examples"],
        users: Int[Tensor, " examples"] | None,
        clients: int,
        seed: Seed,
    ) -> list[Rows]:
        """Return the rows of each partition that has any.

        Raises:
            PlanError: if the code fails, returns no partitioner, or repeats a row.

        """
        try:
            import datasets
            from flwr_datasets.partitioner import Partitioner
        except ModuleNotFoundError as error:
            raise PlanError(
                "partitioner: needs the package flwr-datasets: pip install flwr-datasets"
            ) from error
        order = torch.randperm(len(labels), generator=seed.child("pool").generator())
        columns = {ROW: order.tolist(), LABEL: labels[order].tolist()}
        if users is not None:
            columns[USER] = users[order].tolist()
        build = import_function(self.reference, "split", PlanError)
        # Code of the user, and of flwr-datasets with its settings, may fail in any way.
        try:
            made: Any = self._call(build, clients, seed)
            if not isinstance(made, Partitioner):
                raise TypeError(
                    f"it returned an object of type {type(made).__name__}, and no partitioner"
                )
            made.dataset = datasets.Dataset.from_dict(columns)
            found = [made.load_partition(one)[ROW] for one in range(made.num_partitions)]
        except Exception as error:
            raise PlanError(
                f"partitioner: {self.reference} failed, {describe_failure(error)}: it "
                f"divides a table with the columns {', '.join(columns)}; give what it takes by "
                "arguments"
            ) from error
        rows = [torch.tensor(list(one), dtype=torch.long) for one in found if len(one)]
        together = torch.cat(rows).tolist() if rows else []
        if len({*together}) < len(together):
            raise PlanError(
                f"partitioner: {self.reference} gives an example to several partitions, and "
                "here each has one client: take another partitioner"
            )
        return rows

    # A class of flwr-datasets, or a function of the user.
    def _call(self, build: Any, clients: int, seed: Seed) -> object:
        """Call the code with the plan's arguments, and with clients and seed if it asks."""
        given = [name.replace("-", "_") for name, _ in self.arguments]
        number = int(seed.child(SEED).numpy().integers(2**31))
        defaults = (("num_partitions", clients), (SEED, number))
        more = tuple(one for one in defaults if one[0] not in given)
        bound = bind_arguments(build, None, (*self.arguments, *more))
        return build(*bound.args, **bound.kwargs)
