"""Tables that a function of the user returns: of pandas, Arrow, datasets and flwr-datasets."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from overheard.core.errors import DataError

if TYPE_CHECKING:  # pyarrow is large, and most audits read no table
    import pyarrow

PARTITION = "partition"
"""The column that names the partition of each row of a FederatedDataset, as its user."""


@final
@dataclass(frozen=True, slots=True)
class PythonTable:
    """A table of a function.

    Args:
        table: its cells.
        user: the column with the partition of each row; None = it has no partitions.

    """

    table: "pyarrow.Table"
    user: str | None = None


# A function of the user may return anything.
def table_of(returned: object, place: str) -> PythonTable | None:
    """Return what a function returned as a table; None if it is none.

    Nothing is imported: an object of a package exists only if the package was imported.

    Raises:
        DataError: if partitions cannot be read, or two tables have different columns.

    """
    if _is_of(returned, "pandas", "DataFrame"):
        import pyarrow as pa

        return PythonTable(pa.Table.from_pandas(returned, preserve_index=False))
    if _is_of(returned, "pyarrow", "Table"):
        return PythonTable(returned)
    if _is_of(returned, "datasets", "Dataset"):
        return PythonTable(_of_dataset(returned))
    if _is_of(returned, "flwr_datasets", "FederatedDataset"):
        return PythonTable(_of_partitions(returned, place), PARTITION)
    return None


def _is_of(returned: object, package: str, name: str) -> bool:
    module = sys.modules.get(package)
    kind = getattr(module, name, None)
    return isinstance(kind, type) and isinstance(returned, kind)


# Any: objects of packages that may not be installed.
def _of_dataset(returned: Any) -> "pyarrow.Table":
    """Return the rows of a `datasets.Dataset`, in its order, with the names of its classes."""
    import datasets
    import pyarrow as pa

    table = returned.with_format("arrow")[:]
    for name, feature in returned.features.items():
        if isinstance(feature, datasets.ClassLabel):
            place = table.column_names.index(name)
            names = [feature.int2str(one) for one in table.column(name).to_pylist()]
            table = table.set_column(place, name, pa.array(names))
    return table


def _of_partitions(returned: Any, place: str) -> "pyarrow.Table":
    import pyarrow as pa

    partitioners = getattr(returned, "partitioners", {})
    if "train" not in partitioners:
        raise DataError(
            f"{place} returned a FederatedDataset without a partitioner for "
            "'train': give it one"
        )
    return pa.concat_tables(_partitions(returned, partitioners["train"].num_partitions))


def _partitions(returned: Any, count: int) -> "Iterator[pyarrow.Table]":
    import pyarrow as pa

    for number in range(count):
        table = _of_dataset(returned.load_partition(number, "train"))
        users = pa.array([f"{PARTITION} {number}"] * table.num_rows)
        yield table.append_column(PARTITION, users)
