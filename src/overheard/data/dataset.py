"""The data set of a federation, and the contract of data sources."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.examples import Examples
from overheard.core.known_facts.token_words import TokenWords, words_of_task
from overheard.core.settings import Settings
from overheard.core.task import Task
from overheard.data.listed_records import ListedRecords

NO_ATTRIBUTES: Mapping[str, tuple[str, ...]] = MappingProxyType({})


@final
@dataclass(frozen=True, slots=True)
class ReadColumn:
    """A column of a file that became inputs.

    Args:
        name: its name in the file.
        kind: what it was read as.
        inputs: number of inputs that it became.
        bounds: the smallest and the largest number, as written; None = no numbers.

    """

    name: str
    kind: Literal["number", "category", "text"]
    inputs: int
    bounds: tuple[float, float] | None = None


@final
@dataclass(frozen=True, slots=True)
class DataReading:
    """How custom data were read.

    Args:
        columns: the columns that became inputs; () = the file has none, or is no file.
        scale: the scale of numbers, in words; "" = as the source gives them.
        notes: a sentence on each thing that was left out or found out, or that may not be as
            its owner means it.

    """

    columns: tuple[ReadColumn, ...] = ()
    scale: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dataset:
    """Examples to partition among clients, and a test set that no client holds.

    Args:
        train: examples that clients and auxiliary sets are drawn from.
        test: held-out examples.
        task: the shape of an input and the meaning of a label.
        users: the number of the user of each training example; None = unknown.
        user_names: the name of user i in the source; () = users are only numbered.
        times: when each training example was created, in any unit; None = unknown.
        records: the number of the record, such as a post, from which each training example was
            cut. All examples of a record go to one client. None = one record per example.
        embeddings: a second modality of each record, such as the text next to an image; row i
            is record i (or training example i).
        attributes: values of sensitive attributes, one per user, by attribute; never inputs.
        background: public examples of the same task, from nobody in the training or test part.
        token_words: the words of the tokens, where inputs are texts; None = what the task says.
        reading: how the data were read, if they are custom data.
        listed: candidate records that the owner of a recording lists; None = no list.

    """

    train: Examples
    test: Examples
    task: Task
    users: Int[Tensor, " examples"] | None = None
    user_names: tuple[str, ...] = ()
    times: Int[Tensor, " examples"] | None = None
    records: Int[Tensor, " examples"] | None = None
    embeddings: Float[Tensor, "records dims"] | None = None
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: NO_ATTRIBUTES)
    background: Examples | None = None
    token_words: TokenWords | None = None
    reading: DataReading = DataReading()
    listed: ListedRecords | None = None

    def __post_init__(self) -> None:
        """Refuse examples that do not fit the task, and fields that do not fit the examples."""
        for part, examples in (("train", self.train), ("test", self.test)):
            _check_examples(part, examples, self.task)
        if self.background is not None:
            _check_examples("background", self.background, self.task)
        if self.listed is not None:
            _check_examples("listed", self.listed.records, self.task)
        if self.token_words is not None and self.token_words.tokens != self.task.vocabulary:
            raise ValueError(
                f"token_words has {self.token_words.tokens} tokens, but the task has "
                f"{self.task.vocabulary}"
            )
        for name, numbers in (("times", self.times), ("records", self.records)):
            if numbers is not None and len(numbers) != len(self.train):
                raise ValueError(
                    f"{len(numbers)} {name} for {len(self.train)} training examples: give one "
                    "each"
                )
        if self.embeddings is not None and len(self.embeddings) <= self._last_record():
            raise ValueError(
                f"{len(self.embeddings)} embeddings for {self._last_record() + 1} records: "
                "give one each"
            )
        if self.users is None:
            return
        if len(self.users) != len(self.train):
            raise ValueError(
                f"{len(self.users)} users for {len(self.train)} training examples: give one "
                "each"
            )
        user_count = len(self.user_names) or int(self.users.max()) + 1
        if int(self.users.min()) < 0 or int(self.users.max()) >= user_count:
            raise ValueError(
                f"users must be numbered from 0 to {user_count - 1}, with one name each"
            )
        for name, values in self.attributes.items():
            if len(values) != user_count:
                raise ValueError(
                    f"{len(values)} values of {name} for {user_count} users: give one each"
                )

    def known_token_words(self) -> TokenWords | None:
        """Return the words of the tokens, as far as they are known; None if there are none."""
        return self.token_words or words_of_task(self.task)

    def _last_record(self) -> int:
        return len(self.train) - 1 if self.records is None else int(self.records.max())


class DataSource(Settings, ABC):
    """A source of a data set.

    A concrete source is a final frozen dataclass. Its fields are its settings.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    """Origin of the data and the terms of use."""

    @abstractmethod
    def load(self, folder: Path | None) -> Dataset:
        """Read the data set from this data folder, or download it if it is not there.

        Args:
            folder: as returned by `data_folder`; None = no data folder.

        Raises:
            DataError: if the files are missing and cannot be downloaded, or are damaged. The
                message says which file to put where.

        """


def _check_examples(part: str, examples: Examples, task: Task) -> None:
    inputs, labels = examples.inputs, examples.labels
    if not len(examples):
        raise ValueError(f"the {part} part has no examples")
    if tuple(inputs.shape[1:]) != task.shape:
        raise ValueError(
            f"{part} inputs have shape {tuple(inputs.shape[1:])}, but the task has {task.shape}"
        )
    expected = torch.float32 if task.vocabulary is None else torch.int64
    if inputs.dtype != expected:
        hint = ""
        if inputs.dtype == torch.uint8 and task.vocabulary is None:
            hint = ": convert 8-bit images by `inputs.float() / 255`"
        raise ValueError(f"{part} inputs must be {expected}, got {inputs.dtype}{hint}")
    if task.vocabulary is None:
        if not bool(inputs.isfinite().all()):
            raise ValueError(f"{part} inputs contain NaN or infinity")
    elif int(inputs.min()) < 0 or int(inputs.max()) >= task.vocabulary:
        raise ValueError(f"{part} tokens must lie between 0 and {task.vocabulary - 1}")
    _check_float_labels(part, examples, task)
    if labels.dtype != torch.int64:
        raise ValueError(f"{part} labels must be torch.int64, got {labels.dtype}")
    if int(labels.min()) < 0 or int(labels.max()) >= task.classes:
        raise ValueError(f"{part} labels must lie between 0 and {task.classes - 1}")


def _check_float_labels(part: str, examples: Examples, task: Task) -> None:
    """Refuse labels of another kind than the task's."""
    rows = examples.float_labels
    if (rows is None) != task.has_classes:
        given = "classes" if rows is None else "numbers"
        raise ValueError(f"{part} labels are {given}, but the task is {task.kind}")
    if rows is None:
        return
    if rows.dtype != torch.float32 or rows.shape[1] != task.outputs:
        raise ValueError(
            f"{part} labels must be torch.float32 of shape (examples, {task.outputs}), got "
            f"{rows.dtype} of shape {tuple(rows.shape)}"
        )
    if not bool(rows.isfinite().all()):
        raise ValueError(f"{part} labels contain NaN or infinity")
    if task.kind == "multi_label" and not bool(((rows == 0) | (rows == 1)).all()):
        raise ValueError(f"{part} labels of a multi_label task must be 0 or 1")
