"""Blog posts of a hundred people over time, with the age group of each."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, final

import pandas as pd
import torch

from overheard.core.examples import Examples
from overheard.core.task import Task
from overheard.data.dataset import Dataset, DataSource
from overheard.data.folder import need_file
from overheard.data.holdout import latest
from overheard.data.tables import need_columns, numbered, read_table, whole_numbers, words
from overheard.data.texts import TextSettings, tokenised

CLASS_NAMES = ("13-17", "23-27", "33 and over")

LONGEST = 2**31
"""Above every number that a post bears within its blog."""

COPY = 0.5
"""The share of posts that another blog has too above which a blog is its copy."""


@final
@dataclass(frozen=True, slots=True)
class Blogs(DataSource):
    """Label = the blogger's age group, user = blogger; the latest fifth of each is the test.

    A blogger has one label, so a client that stands for a user holds one label only. The corpus
    has some blogs under several numbers: of those the first is kept and the copies are left
    out, 11 of the 100 bloggers, for nobody could tell who of them sent an update.

    Args:
        vocabulary: how many words have tokens of their own.
        tokens: how many words of a post are read.

    """

    vocabulary: int = 20_000
    tokens: int = 100

    name: ClassVar[str] = "blogs"
    source: ClassVar[str] = (
        "Schler, Koppel, Argamon, Pennebaker 2006, Blog Authorship Corpus; non-commercial "
        "research use; posts of real people: never quote them"
    )

    def load(self, folder: Path | None) -> Dataset:
        """Read `blogs/blogs_100users_x300.parquet`; it cannot be fetched in this form."""
        path = need_file(folder, ("blogs/blogs_100users_x300.parquet",), self.source)
        table = _without_copies(path, read_table(path))
        texts = words(path, table, "text")
        labels = torch.from_numpy(whole_numbers(path, table, "label", len(CLASS_NAMES)))
        users = numbered(path, table, "user")
        order = torch.from_numpy(whole_numbers(path, table, "seq", LONGEST))
        test = latest(users.numbers, order)
        tokens = tokenised(
            [text for text, late in zip(texts, test.tolist(), strict=True) if not late],
            [text for text, late in zip(texts, test.tolist(), strict=True) if late],
            TextSettings(self.vocabulary, self.tokens),
        )
        return Dataset(
            Examples(tokens.train, labels[~test]),
            Examples(tokens.test, labels[test]),
            Task((self.tokens,), CLASS_NAMES, tokens.vocabulary),
            users.numbers[~test],
            users.names,
        )


def _without_copies(path: Path, table: pd.DataFrame) -> pd.DataFrame:
    """Leave out bloggers most of whose posts stand under an earlier name too."""
    need_columns(path, table, ("text", "user"))
    first = table.groupby("text")["user"].transform("min")
    copied = (first != table["user"]).groupby(table["user"]).transform("mean")
    return table[copied <= COPY].reset_index(drop=True)
