"""A loader of the user's own data: arrays, a table, or the result of a function."""

from dataclasses import replace
from pathlib import Path

import torch
from jaxtyping import Int, Shaped
from torch import Tensor
from torch.utils.data import TensorDataset

from overheard.core.custom_code.failure import describe_failure
from overheard.core.custom_code.reference import REFERENCE, import_function
from overheard.core.errors import DataError
from overheard.core.examples import Examples, without_classes
from overheard.core.seeds import Seed
from overheard.core.task import Task, TaskKind
from overheard.data.dataset import DataReading, Dataset
from overheard.data.holdout import hold_out_fifth
from overheard.data.reading.custom_arrays import (
    Arrays,
    load_arrays,
    note_empty_classes,
    with_listed_arrays,
)
from overheard.data.reading.custom_table import (
    TableColumns,
    TableSettings,
    dataset_of_table,
    load_table,
)
from overheard.data.reading.float_labels import (
    float_label_rows,
    kind_of_labels,
    output_names,
)
from overheard.data.reading.formats.arrow_folder import is_arrow_folder
from overheard.data.reading.formats.image_folder import ImageSettings, read_image_folder
from overheard.data.reading.formats.leaf import USER, LeafData, is_leaf, read_leaf
from overheard.data.reading.formats.saved_images import images_of_returned, read_saved_images
from overheard.data.reading.python_tables import table_of
from overheard.data.reading.text_table import TABLE_SUFFIXES, table_of_arrow
from overheard.data.reading.token_data import tokens_of_returned


def load_custom_data(
    reference: str,
    *,
    label: str = "label",
    user: str | None = None,
    text: str | None = None,
    time: str | None = None,
    attributes: tuple[str, ...] = (),
    task: TaskKind = "classification",
    more_labels: tuple[str, ...] = (),
    listed: str | None = None,
    table: TableSettings = TableSettings(),  # noqa: B008 - a value that never changes
    images: ImageSettings = ImageSettings(),  # noqa: B008 - a value that never changes
    seed: Seed = Seed(0),  # noqa: B008 - a value that never changes
) -> Dataset:
    """Load the data set that a plan refers to.

    Args:
        reference: a path to an `.npz` file, a table, JSON of LEAF or a folder of images by
            class, relative to the working directory; or `package.module:function`, a function
            without arguments that returns a `Dataset`, inputs and labels as a `TensorDataset`
            or a tuple, or a table. The function is run, so name only functions that you trust.
        label: the column of the labels in a table.
        user: the column of the users; None = unknown.
        text: the column of the texts to learn from; None = all remaining columns are inputs, as
            numbers and categories.
        time: the column of the times, as numbers or ISO dates; None = unknown. Arrays have
            `times` in their file instead.
        attributes: columns of sensitive attributes, each with one value per user.
        task: what the labels of a table are. A function and arrays show it by the form of
            their labels: one whole number per example, a row of 0 and 1, or real numbers.
            Arrays of whole numbers may be numbers to predict: "regression".
        more_labels: further columns of labels, unless the task is classification.
        listed: a file of the same kind with candidate records; of a function's data, an `.npz`
            whose inputs are taken as they are. None = no list.
        table: how a table is read; of arrays, the scale alone.
        images: how images of a folder are read; of LEAF's rows of numbers, their side.
        seed: chooses the fifth that is held out if the data have no test part.

    Raises:
        DataError: if the data do not exist or cannot be used.

    """
    leaf = read_leaf(Path(reference), images.side) if is_leaf(reference) else None
    is_folder = leaf is None and Path(reference).is_dir()
    is_table = reference.endswith(TABLE_SUFFIXES) if leaf is None else leaf.table is not None
    columns = TableColumns(label, user, text, time, attributes, task, more_labels)
    returned, dataset, found, arrays = None, None, None, None
    if REFERENCE.fullmatch(reference):
        returned = _call(reference)
        arrays = images_of_returned(returned, reference, images, label)
        if arrays is None:
            dataset = _dataset_of_returned(returned, reference, seed)
            found = None if dataset is not None else table_of(returned, reference)
            is_table = found is not None
    if not is_table:
        has_arrays = leaf is not None or reference.endswith(".npz")
        _refuse_settings_of_tables(reference, columns, has_arrays=has_arrays)
    candidates = None if listed is None else _listed_path(listed, is_table)
    if found is not None:
        columns, path = replace(columns, user=user or found.user), Path(reference)
        cells = table_of_arrow(path, found.table)
        return dataset_of_table(path, cells, columns, table, seed, candidates)
    if leaf is not None and leaf.table is not None:
        return _dataset_of_leaf_texts(Path(reference), leaf, columns, table, seed, candidates)
    if is_folder or leaf is not None:
        arrays = _images_of_folder(reference, images, label) if leaf is None else leaf.arrays
    if arrays is not None:
        scale = table.inputs.scale
        return load_arrays(Path(reference), seed, scale, task, candidates, arrays)
    if reference.endswith((".npz", *TABLE_SUFFIXES)):
        path = Path(reference)
        if not path.is_file():
            raise DataError(
                f"there is no file {reference}: correct the path, which is relative to "
                f"{Path.cwd()}"
            )
        if path.suffix == ".npz":
            return load_arrays(path, seed, table.inputs.scale, task, candidates)
        return load_table(path, columns, table, seed, candidates)
    if REFERENCE.fullmatch(reference):
        if dataset is None:
            dataset = dataset_of_tensors(returned, reference, seed)
        return dataset if candidates is None else with_listed_arrays(dataset, candidates)
    raise DataError(
        f"{reference!r} is not a data reference: give an .npz, {', '.join(TABLE_SUFFIXES)} "
        "file, a folder of images by class, or a function as 'package.module:function'"
    )


def _images_of_folder(reference: str, images: ImageSettings, label: str) -> Arrays:
    """Return images by class, or those that `datasets` saved."""
    path = Path(reference)
    if is_arrow_folder(reference):
        return read_saved_images(path, images, label)
    return read_image_folder(path, images)


def _refuse_settings_of_tables(
    reference: str, columns: TableColumns, *, has_arrays: bool
) -> None:
    """Refuse what only a table has, of other data.

    Raises:
        DataError: if such a setting is given.

    """
    if columns.time is not None or columns.attributes or columns.more_labels:
        raise DataError(
            "time, attributes and more_labels are for the columns of a table, but "
            f"{reference} is no table: leave them out. Arrays have `times` in their file. A "
            "function returns all in its Dataset"
        )
    if columns.task != "classification" and not has_arrays:
        raise DataError(
            f"task is for a table or an .npz, but {reference} is neither: leave it out. A "
            "function shows the task by the form of its labels"
        )


def _dataset_of_leaf_texts(
    path: Path,
    leaf: LeafData,
    columns: TableColumns,
    settings: TableSettings,
    seed: Seed,
    candidates: Path | None,
) -> Dataset:
    """Return the data set of LEAF's texts.

    Raises:
        DataError: if an input has several texts, and none of them is chosen.

    """
    assert leaf.table is not None
    text = columns.text
    if text is None and len(leaf.texts) > 1:
        raise DataError(
            f"{path}: each input has several values, {', '.join(leaf.texts)}: name the one to "
            f"learn from, such as text = {leaf.texts[-1]!r} in the plan's source (of init: "
            f"--text {leaf.texts[-1]})"
        )
    columns = replace(columns, user=columns.user or USER, text=text or leaf.texts[0])
    cells = table_of_arrow(path, leaf.table)
    return dataset_of_table(path, cells, columns, settings, seed, candidates)


def _listed_path(listed: str, is_table: bool) -> Path:
    """Return the path of a file with candidate records, which is of the kind of the data."""
    path = Path(listed)
    if not listed.endswith(TABLE_SUFFIXES if is_table else (".npz",)):
        kind = "a table, as the data are" if is_table else "an .npz with x, y and owner"
        raise DataError(f"candidate records: {listed} must be {kind}")
    if not path.is_file():
        raise DataError(f"there is no file {listed}: correct the path of the candidate records")
    return path


# A function of the user may return anything.
def _call(reference: str) -> object:
    """Call a function of the user; one message names it, its contract and the cause."""
    function = import_function(reference, "data", DataError)
    try:
        return function()
    except DataError:
        raise
    except Exception as error:
        raise DataError(
            f"data: {reference} failed, {describe_failure(error)}: it takes nothing and "
            "returns an overheard.data.dataset.Dataset"
        ) from error


# A function of the user may return anything.
def _dataset_of_returned(returned: object, reference: str, seed: Seed) -> Dataset | None:
    if isinstance(returned, Dataset):
        return returned
    return tokens_of_returned(returned, reference, seed)


def dataset_of_tensors(returned: object, reference: str, seed: Seed) -> Dataset:
    """Return the data set of inputs and labels, of which a fifth of each class is held out.

    Inputs are used as they are, in float32. Classes are named by their numbers. Labels that are
    no classes are used as they are, in float32: a row of 0 and 1 for each example, or real
    numbers (see `data.reading.float_labels`).

    Args:
        returned: a `TensorDataset` of inputs and labels, or the two as a tuple of tensors or
            arrays.
        reference: the function that returned it, for messages.
        seed: chooses the fifth.

    Raises:
        DataError: if it is neither, or if the two do not fit each other.

    """
    parts = returned.tensors if isinstance(returned, TensorDataset) else returned
    if not isinstance(parts, tuple) or len(parts) != 2:
        raise DataError(
            f"{reference} returned an object of type {type(returned).__name__}: it must return "
            "an overheard.data.dataset.Dataset, a TensorDataset of inputs and labels, both as "
            "a tuple: `return inputs, labels`, or a table of pandas, Arrow, datasets or "
            "flwr-datasets"
        )
    try:
        inputs, labels = torch.as_tensor(parts[0]), torch.as_tensor(parts[1])
        kind = kind_of_labels(labels)
        if labels.shape[:1] != inputs.shape[:1]:
            raise ValueError(
                f"got {len(inputs)} inputs and labels of shape {tuple(labels.shape)}: give one "
                "label per input"
            )
        inputs = inputs.float() if inputs.is_floating_point() else inputs
        if kind == "classification":
            examples, names = _with_classes(inputs, labels.long().reshape(-1))
        else:
            examples = without_classes(inputs, float_label_rows(labels))
            names = output_names(kind, examples.loss_labels.shape[1])
        test = hold_out_fifth(examples.labels, None, seed, Path(reference))
        task = Task(tuple(inputs.shape[1:]), names, kind=kind)
        notes = note_empty_classes(names, labels.numpy()) if task.has_classes else ()
        reading = DataReading(notes=notes)
        return Dataset(examples.take(~test), examples.take(test), task, reading=reading)
    except (ValueError, TypeError, RuntimeError) as error:
        raise DataError(f"{reference}: {error}") from error


def _with_classes(
    inputs: Shaped[Tensor, "examples ..."], labels: Int[Tensor, " examples"]
) -> tuple[Examples, tuple[str, ...]]:
    """Return examples of classes, and the names of the classes."""
    if int(labels.min()) < 0:
        raise ValueError(f"labels must be numbers from 0, but one is {int(labels.min())}")
    return Examples(inputs, labels), tuple(map(str, range(int(labels.max()) + 1)))
