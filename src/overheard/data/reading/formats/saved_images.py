"""Images in a column of Hugging Face's `datasets`: of a saved folder, or of a function."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Shaped

from overheard.archive.excerpt import printable_excerpt
from overheard.core.errors import DataError
from overheard.data.reading.arrays import checked_names
from overheard.data.reading.formats.arrow_folder import (
    ArrowColumns,
    checked_class_names,
    read_arrow_folder,
    read_features,
    stated_class_names,
)
from overheard.data.reading.formats.image_folder import ImageSettings, stack_images

if TYPE_CHECKING:  # pyarrow is large, and most audits read no table
    import pyarrow

LABELS = ("label", "labels")
"""Usual names of the column of labels."""

Arrays = Mapping[str, Shaped[np.ndarray, "examples ..."]]


def has_images(path: Path) -> bool:
    """Return whether a saved dataset states a column of images."""
    return bool(_image_column(read_features(path)))


def read_saved_images(path: Path, settings: ImageSettings, label: str) -> Arrays:
    """Read the images that `datasets.Dataset.save_to_disk` wrote, as the arrays of an `.npz`.

    Each image is a PNG or JPEG within the file; its size is checked before it is decoded. What
    lies elsewhere, at a path that the file names, is not opened.

    Args:
        path: the folder.
        settings: size and channels of the images.
        label: name of the column of labels; without it, one of `LABELS` is taken.

    Returns:
        "x" (examples x height x width x channels, uint8), "y" (numbers or names of classes)
        and, if the dataset names its classes, "class_names" in its order.

    Raises:
        DataError: if a column is missing or damaged, or images are damaged, too large, differ
            in size, or lie elsewhere.

    """
    features = read_features(path)
    images = _image_column(features)
    found = read_arrow_folder(path, frozenset({images, label, *LABELS}))
    if images not in found.columns:
        raise DataError(
            f"{path}: dataset_info.json states the images {printable_excerpt(images)!r}, which "
            "are no column: save the dataset again"
        )
    label = next((one for one in (label, *LABELS) if one in found.columns), label)
    if label not in found.columns:
        raise DataError(
            f"{path} has the columns {printable_excerpt(', '.join(found.names))}, and no "
            f"{printable_excerpt(label)!r}: name the column of the classes (of init: --label)"
        )
    names = stated_class_names(features, label)
    cells = found.cells(label)
    return {
        "x": stack_images(path, _contents(path, found.columns[images]), settings),
        **_labels(path, label, cells, names),
    }


# A function of the user may return anything.
def images_of_returned(
    returned: object, place: str, settings: ImageSettings, label: str
) -> Arrays | None:
    """Return the images of a `datasets.Dataset`; None if it is none, or has no images.

    Args:
        returned: what a function returned.
        place: the function, for messages.
        settings: size and channels of the images.
        label: name of the column of labels; without it, one of `LABELS` is taken.

    Raises:
        DataError: as `read_saved_images`.

    """
    kind = getattr(sys.modules.get("datasets"), "Dataset", None)
    if not isinstance(kind, type) or not isinstance(returned, kind):
        return None
    dataset: Any = returned  # Any: the package may not be installed.
    images = next(
        (name for name, one in dataset.features.items() if type(one).__name__ == "Image"), None
    )
    if images is None:
        return None
    label = next((one for one in (label, *LABELS) if one in dataset.features), label)
    if label not in dataset.features:
        raise DataError(
            f"{place}: its Dataset has the columns {', '.join(dataset.features)}, and no "
            f"{label!r}: name the column of the classes (of init: --label)"
        )
    table, path = dataset.with_format("arrow")[:], Path(place)
    names = getattr(dataset.features[label], "names", None)
    cells = ArrowColumns(path, (label,), {label: table.column(label)}).cells(label)
    contents = _contents(path, table.column(images))
    return {
        "x": stack_images(path, contents, settings),
        **_labels(path, label, cells, names),
    }


# Any: JSON has values of any type.
def _image_column(features: Mapping[str, Any]) -> str:
    """Return the name of the first column of images; "" = none."""
    found = (
        name
        for name, one in features.items()
        if isinstance(one, dict) and one.get("_type") == "Image"
    )
    return next(found, "")


def _contents(path: Path, column: "pyarrow.ChunkedArray") -> Iterable[tuple[str, bytes]]:
    """Yield the place of each image, and its bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
        column = pc.struct_field(column, "bytes")
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        raise DataError(
            f"{path}: its images have the type {printable_excerpt(str(kind))}, but must have "
            "bytes: save the dataset again by its save_to_disk"
        )
    for number, image in enumerate(column, 1):
        if not image.is_valid:
            raise DataError(
                f"{path}: image {number} has no bytes: it lies elsewhere, or there is none. "
                "Save the dataset again by its save_to_disk, which takes in all images, or "
                "drop the row"
            )
        yield f"{path}: image {number}", image.as_py()


def _labels(path: Path, label: str, cells: Sequence[str], names: object) -> Arrays:
    """Return the labels as "y" and, if classes have names, those in their order."""
    if "" in cells:
        raise DataError(
            f"{path}: the column {printable_excerpt(label)!r} has empty values: drop those rows"
        )
    if not all(one.isascii() and one.isdigit() and len(one) < 10 for one in cells):
        if names:
            raise DataError(
                f"{path}: the column {printable_excerpt(label)!r} has labels that are no "
                "number of a class, such as -1 for no label: drop those rows"
            )
        # In an array each name takes the memory of the longest: they are short.
        checked_names(path, label, sorted(set(cells)))
        return {"y": np.array(cells)}
    numbers = np.array([int(one) for one in cells])
    stated = checked_class_names(path, names, int(numbers.max(initial=0)))
    if not stated:
        return {"y": numbers}
    return {"y": numbers, "class_names": np.array(checked_names(path, label, stated))}
