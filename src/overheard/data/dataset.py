"""A data set as the federation takes it, and the contract of where one comes from."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.examples import Examples
from overheard.core.task import Task

NO_ATTRIBUTES: Mapping[str, tuple[str, ...]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Dataset:
    """Examples to share out among clients, and a test set that no client ever holds.

    Args:
        train: what clients and auxiliary sets are drawn from.
        test: held out.
        task: the shape of an input and the meaning of a label.
        users: the number of the person behind each training example; None where untold.
        user_names: what user i is called in the source; () where numbers must do.
        times: when each training example came to be, in any unit; None where untold.
        records: the number of the record, such as a post, that each training example was cut
            out of: examples of one record go to one hand. None = each is a record of its own.
        embeddings: what each record is like in another modality than that of the inputs, such
            as the text beside an image; row i is record i (or training example i).
        attributes: values of sensitive attributes, by attribute, one a user: never inputs.
        background: public examples of the same task, of nobody in the training or test part.

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

    def __post_init__(self) -> None:
        """Refuse examples that do not fit the task, and what does not fit the examples."""
        for part, examples in (("train", self.train), ("test", self.test)):
            _check(part, examples, self.task)
        if self.background is not None:
            _check("background", self.background, self.task)
        for name, numbers in (("times", self.times), ("records", self.records)):
            if numbers is not None and len(numbers) != len(self.train):
                raise ValueError(f"{len(numbers)} {name} for {len(self.train)} examples")
        if self.embeddings is not None and len(self.embeddings) <= self._last_record():
            raise ValueError(f"a record has no embedding: there are {len(self.embeddings)}")
        if self.users is None:
            return
        if len(self.users) != len(self.train):
            raise ValueError(
                f"{len(self.users)} users for {len(self.train)} training examples: one each"
            )
        named = len(self.user_names) or int(self.users.max()) + 1
        if int(self.users.min()) < 0 or int(self.users.max()) >= named:
            raise ValueError(f"users are numbered from 0 to {named - 1}, one name each")
        for name, values in self.attributes.items():
            if len(values) != named:
                raise ValueError(f"{len(values)} values of {name} for {named} users: one each")

    def _last_record(self) -> int:
        return len(self.train) - 1 if self.records is None else int(self.records.max())


class DataSource(ABC):
    """Somewhere a data set comes from.

    A concrete source is a final frozen dataclass: its fields are its settings.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    """Where the data come from, and on what terms they may be used."""

    @abstractmethod
    def load(self, folder: Path | None) -> Dataset:
        """Read the data set from this data folder or, failing that, fetch it.

        Args:
            folder: as `data_folder` gives it; None = there is none.

        Raises:
            DataError: if the files are absent and cannot be fetched, or are damaged; the
                message says which file to put where.

        """


def _check(part: str, examples: Examples, task: Task) -> None:
    inputs, labels = examples.inputs, examples.labels
    if not len(examples):
        raise ValueError(f"the {part} part has no examples")
    if tuple(inputs.shape[1:]) != task.shape:
        raise ValueError(
            f"{part} inputs have shape {tuple(inputs.shape[1:])}, the task says {task.shape}"
        )
    wanted = torch.float32 if task.vocabulary is None else torch.int64
    if inputs.dtype != wanted:
        raise ValueError(f"{part} inputs must be {wanted}, got {inputs.dtype}")
    if task.vocabulary is None:
        if not bool(inputs.isfinite().all()):
            raise ValueError(f"{part} inputs hold NaN or infinity")
    elif int(inputs.min()) < 0 or int(inputs.max()) >= task.vocabulary:
        raise ValueError(f"{part} tokens must lie between 0 and {task.vocabulary - 1}")
    if labels.dtype != torch.int64:
        raise ValueError(f"{part} labels must be torch.int64, got {labels.dtype}")
    if int(labels.min()) < 0 or int(labels.max()) >= task.classes:
        raise ValueError(f"{part} labels must lie between 0 and {task.classes - 1}")
