"""What was read of a data set, in sentences: inputs, classes, scale, what was left out."""

from collections.abc import Sequence

from overheard.archive.excerpt import printable_excerpt
from overheard.core.split import Split
from overheard.data.content_hash import hash_contents
from overheard.data.dataset import Dataset, ReadColumn
from overheard.data.splits.iid import Iid

MAX_NAMED = 12
"""The most columns or classes that a sentence names."""

NO_LABEL_SHARES = (
    "Label shares are refused: the labels of a causal language model are the tokens of its "
    "texts, and no text has a class"
)
"""What is said of a language model, in place of its labels."""


def summarise_data(dataset: Dataset, split: Split | None = None) -> tuple[str, ...]:
    """Return what was read of a data set, a sentence each; names are safe to print.

    Args:
        dataset: the data set.
        split: how a plan partitions it; None = it does not.

    """
    train, test, reading = dataset.train, dataset.test, dataset.reading
    head = f"Data: {len(train) + len(test)} examples, of which {len(test)} are held out."
    return (
        head,
        _describe_inputs(dataset),
        _describe_labels(dataset),
        *_describe_users(dataset),
        *_describe_split(dataset, split),
        *_describe_copies(dataset),
        *map(printable_excerpt, reading.notes),
    )


def _describe_inputs(dataset: Dataset) -> str:
    reading, inputs = dataset.reading, dataset.train.inputs
    if dataset.task.vocabulary is not None:
        words = f"texts of {inputs.shape[1]} tokens of {dataset.task.vocabulary}"
        column = f", column {reading.columns[0].name!r}" if reading.columns else ""
        return f"Inputs: {words}{printable_excerpt(column)}."
    low, high = float(inputs.min()), float(inputs.max())
    mean, deviation = float(inputs.mean()), float(inputs.std(correction=0))
    spread = f"from {low:.3g} to {high:.3g}, mean {mean:.2g}, deviation {deviation:.2g}"
    scale = f" Numbers are {reading.scale}." if reading.scale else ""
    if not reading.columns:
        shape = " x ".join(map(str, inputs.shape[1:]))
        return f"Inputs: {shape} numbers {spread}.{scale}"
    parts = []
    for kind, words in (("number", "numbers"), ("category", "categories")):
        found = [_describe_column(one) for one in reading.columns if one.kind == kind]
        if found:
            parts.append(f"{len(found)} of {words} ({_listed(found)})")
    total = f"{inputs.shape[1]} from {len(reading.columns)} columns"
    return f"Inputs: {total}: {'; '.join(parts)}. They lie {spread}.{scale}"


def _describe_column(column: ReadColumn) -> str:
    name = printable_excerpt(column.name)
    if column.bounds is None:
        return f"{name}: {column.inputs}"
    low, high = column.bounds
    return f"{name} {low:.6g} to {high:.6g}"


def _describe_labels(dataset: Dataset) -> str:
    task = dataset.task
    if task.kind == "language_modeling":
        return f"{NO_LABEL_SHARES}."
    if not task.has_classes:
        words = "Labels that may apply" if task.kind == "multi_label" else "Numbers to predict"
        return f"{words}: {_listed([printable_excerpt(name) for name in task.class_names])}."
    counts = dataset.train.label_counts(task.classes) + dataset.test.label_counts(task.classes)
    classes = zip(task.class_names, counts.tolist(), strict=True)
    return f"Classes: {_listed([f'{printable_excerpt(name)} ({n})' for name, n in classes])}."


def _describe_users(dataset: Dataset) -> tuple[str, ...]:
    if dataset.users is None:
        return ()
    counts = dataset.users.bincount()
    present = counts[counts > 0]
    return (
        f"Users: {len(present)}, with {int(present.min())} to {int(present.max())} examples.",
    )


def _describe_split(dataset: Dataset, split: Split | None) -> tuple[str, ...]:
    if not isinstance(split, Iid) or not dataset.task.has_classes:
        return ()
    if not split.balanced:
        return ("Clients hold the classes in the shares of the data (balanced = false).",)
    counts = dataset.train.label_counts(dataset.task.classes)
    if int(counts.max()) < 2 * int(counts.min()):
        return ()
    return (
        "Clients hold all classes about equally often, and the data do not: set "
        "balanced = false in the split to keep the shares of the data.",
    )


def _describe_copies(dataset: Dataset) -> tuple[str, ...]:
    copies = int((~hash_contents(dataset).is_unique).sum())
    if not copies:
        return ()
    return (
        f"Copies: {copies} of {len(dataset.train)} examples have the same inputs as another. "
        "Attackers get none of them as auxiliary examples, and they are no canaries; clients "
        "may hold copies of each other's examples.",
    )


def _listed(words: Sequence[str]) -> str:
    more = len(words) - MAX_NAMED
    return ", ".join(words[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
