"""The user's own data."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, final

from overheard.core.task import TaskKind
from overheard.data.dataset import Dataset, DataSource
from overheard.data.reading.custom_data import load_custom_data


@final
@dataclass(frozen=True, slots=True)
class Own(DataSource):
    """Your own file (.npz, .parquet, .csv, .csv.gz), or the result of your own function.

    Args:
        reference: a path relative to the working directory, or "package.module:function", a
            function without arguments that returns a `Dataset`, or inputs and labels as a
            `TensorDataset` or a tuple. It is run, so name only functions that you trust.
        label: the column of the labels in a table.
        user: the column of the users; None = unknown.
        text: the column of the texts to learn from; None = all other columns are inputs, as
            numbers and categories.
        time: the column of the times, as numbers or as dates such as 2004-08-02; never an
            input. None = unknown.
        attributes: columns of sensitive attributes of the users, each with one value per user;
            never inputs.
        vocabulary: the number of words in the vocabulary of a text column.
        tokens: the number of words that are read of a text.
        task: what a table's labels are. "classification": names or numbers of classes.
            "multi_label": columns of 0 and 1, one for each label that may apply. "regression":
            columns of numbers to predict, which are standardised. A function shows it by the
            form of its labels; arrays have classes.
        more_labels: further columns of labels, for "multi_label" and "regression".

    """

    reference: str
    label: str = "label"
    user: str | None = None
    text: str | None = None
    time: str | None = None
    attributes: tuple[str, ...] = ()
    vocabulary: int = 20_000
    tokens: int = 40
    task: TaskKind = "classification"
    more_labels: tuple[str, ...] = ()

    name: ClassVar[str] = "own"
    source: ClassVar[str] = "yours, on your terms"

    def load(self, folder: Path | None) -> Dataset:
        """Read the file or call the function; the data folder is not used."""
        return load_custom_data(
            self.reference,
            label=self.label,
            user=self.user,
            text=self.text,
            time=self.time,
            attributes=self.attributes,
            task=self.task,
            more_labels=self.more_labels,
            vocabulary=self.vocabulary,
            tokens=self.tokens,
        )
