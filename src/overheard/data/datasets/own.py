"""The user's own data."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, final

from overheard.data.dataset import Dataset, DataSource
from overheard.data.reading.own import load_own


@final
@dataclass(frozen=True, slots=True)
class Own(DataSource):
    """A file of yours (.npz, .parquet, .csv, .csv.gz), or what a function of yours returns.

    Args:
        reference: a path from the working directory, or "package.module:function", a function
            without arguments that returns a `Dataset`; it is run, so trust it.
        label: the column of a table that holds the label.
        user: the column that holds the person behind a row; None = untold.
        text: the column to learn from, as text; None = all other columns, as numbers and
            categories.
        time: the column that says when a row came to be, as numbers or as dates such as
            2004-08-02; None = untold. No input.
        attributes: columns that hold sensitive attributes of the users, each with one value a
            user. No inputs.
        vocabulary: how many words of a text column have tokens of their own.
        tokens: how many words of a text are read.

    """

    reference: str
    label: str = "label"
    user: str | None = None
    text: str | None = None
    time: str | None = None
    attributes: tuple[str, ...] = ()
    vocabulary: int = 20_000
    tokens: int = 40

    name: ClassVar[str] = "own"
    source: ClassVar[str] = "yours, on your terms"

    def load(self, folder: Path | None) -> Dataset:
        """Read the file or call the function; the data folder plays no part."""
        return load_own(
            self.reference,
            label=self.label,
            user=self.user,
            text=self.text,
            time=self.time,
            attributes=self.attributes,
            vocabulary=self.vocabulary,
            tokens=self.tokens,
        )
