"""Contract tests for data sources."""

from collections.abc import Callable
from pathlib import Path

import torch

from overheard.data.content_hash import content_hashes
from overheard.data.dataset import Dataset, DataSource
from overheard.testing.require import require, require_part

MANY_CLASSES = 1000
"""With this many labels, some may be missing in the training or the test part."""


def check_dataset(source: DataSource, folder: Path | None = None) -> None:
    """Check that a data source satisfies the contract of data sources.

    Args:
        source: the source to load.
        folder: folder of its files, if it reads any.

    Raises:
        AssertionError: naming the violated rule.
        DataError: if its files are missing or damaged.

    """
    require_part(source)
    dataset = source.load(folder)
    for check in DATASET_CHECKS:
        check(dataset)


def examples_fit_the_task(dataset: Dataset) -> None:
    """Check shapes, types and values of examples, and that each label occurs in both parts."""
    task = dataset.task
    for part, examples in (("training", dataset.train), ("test", dataset.test)):
        require(len(examples) > 0, f"the {part} part has no examples")
        shape = tuple(examples.inputs.shape[1:])
        require(shape == task.shape, f"{part} inputs are {shape}, the task says {task.shape}")
        require(bool(examples.inputs.isfinite().all()), f"{part} inputs hold NaN or infinity")
        wanted = torch.float32 if task.vocabulary is None else torch.int64
        require(examples.inputs.dtype == wanted, f"{part} inputs must be {wanted}")
        if task.classes < MANY_CLASSES:
            # Every label must occur in the training and in the test part.
            rarest = int(examples.label_counts(task.classes).min())
            require(rarest > 0, f"a label has no example in the {part} part")
    check_float_labels(dataset)
    if task.vocabulary is not None:
        largest = int(dataset.train.inputs.max())
        require(largest < task.vocabulary, f"token {largest} is not in the vocabulary")
    if len(task.shape) == 3:
        channels = dataset.train.inputs.double().transpose(0, 1).flatten(1)
        require(
            torch.allclose(channels.mean(1), torch.zeros(1).double(), atol=1e-5)
            and torch.allclose(channels.std(1), torch.ones(1).double(), atol=1e-3),
            "each channel of the training images must have mean 0 and deviation 1",
        )


def check_float_labels(dataset: Dataset) -> None:
    """Check that no label applies to all or none of the examples, and that numbers vary."""
    if dataset.task.has_classes:
        return
    for part, examples in (("training", dataset.train), ("test", dataset.test)):
        rows = examples.loss_labels
        varies = bool((rows.max(0).values > rows.min(0).values).all())
        require(varies, f"a label or number is the same in all examples of the {part} part")


def user_metadata_has_one_entry_per_user(dataset: Dataset) -> None:
    """Check that each user has a name, examples, and a value of each attribute."""
    if dataset.users is None:
        require(not dataset.attributes, "there are attributes, but no users")
        return
    require(
        len(dataset.users) == len(dataset.train), "each training example must have one user"
    )
    require(int(dataset.users.bincount().min()) > 0, "a user has no examples")
    users = len(set(dataset.users.tolist()))
    require(len(dataset.user_names) == users, f"{users} users must have as many names")
    for attribute, values in dataset.attributes.items():
        require(attribute and all(values), "an attribute, or one of its values, has no name")
        require(len(values) == users, f"{attribute}: each user must have one value")
        require(
            2 <= len(set(values)) < len(values),
            f"{attribute} must have 2 values or more, and fewer than there are users",
        )


def each_record_has_one_user_and_time(dataset: Dataset) -> None:
    """Check that each record has one user and time, and no two records share both."""
    if dataset.times is None:
        return
    require(
        len(dataset.times) == len(dataset.train), "each training example must have one time"
    )
    users = torch.zeros_like(dataset.times) if dataset.users is None else dataset.users
    records = torch.arange(len(users)) if dataset.records is None else dataset.records
    distinct = torch.unique(torch.stack([records, users, dataset.times], dim=1), dim=0)
    count = len(set(records.tolist()))
    require(len(distinct) == count, "a record has two users or times")
    times = len(torch.unique(distinct[:, 1:], dim=0))
    require(times == len(distinct), "two records of a user have the same time")


def embeddings_are_not_in_the_inputs(dataset: Dataset) -> None:
    """Check that each record has an embedding, and that embeddings are not copied inputs."""
    if dataset.embeddings is None:
        return
    require(bool(dataset.embeddings.isfinite().all()), "embeddings hold NaN or infinity")
    if dataset.records is None:
        require(
            len(dataset.embeddings) == len(dataset.train), "each record must have an embedding"
        )
    else:
        last = int(dataset.records.max())
        require(last < len(dataset.embeddings), "each record must have an embedding")
    if dataset.train.inputs.is_floating_point():
        columns = dataset.train.inputs.flatten(1).T
        for column in dataset.embeddings.T:
            is_copied = bool((columns == column).all(1).any())
            require(not is_copied, "a column of the embeddings is a column of the inputs")


def background_shares_no_examples(dataset: Dataset) -> None:
    """Check that no background example is in the training or test part."""
    if dataset.background is None:
        return
    shape = tuple(dataset.background.inputs.shape[1:])
    require(shape == dataset.task.shape, f"the background has inputs of shape {shape}")
    private = content_hashes(torch.cat([dataset.train.inputs, dataset.test.inputs]))
    shared = bool(torch.isin(content_hashes(dataset.background.inputs), private).any())
    require(not shared, "the background contains an example of the training or test part")


DATASET_CHECKS: tuple[Callable[[Dataset], None], ...] = (
    examples_fit_the_task,
    user_metadata_has_one_entry_per_user,
    each_record_has_one_user_and_time,
    embeddings_are_not_in_the_inputs,
    background_shares_no_examples,
)
