"""Blog posts of a hundred people over time, with the age group and gender of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Literal, final

import numpy as np
import pandas as pd
import torch
from jaxtyping import Int64
from torch import Tensor

from overheard.core.errors import DataError, PlanError
from overheard.core.examples import Examples
from overheard.core.task import Task
from overheard.data.contents import content_keys
from overheard.data.dataset import Dataset, DataSource
from overheard.data.holdout import latest
from overheard.data.reading.attributes import attributes_of
from overheard.data.reading.folder import find_file, need_file
from overheard.data.reading.next_words import Windows, WindowSettings, next_words
from overheard.data.reading.style import Writings, style_vectors
from overheard.data.reading.tables import (
    Numbered,
    need_columns,
    numbered,
    read_table,
    whole_numbers,
    words,
)
from overheard.data.reading.texts import (
    TextSettings,
    Vocabulary,
    alphabetical,
    most_frequent_first,
    words_of,
)
from overheard.data.reading.times import dates

AGE_GROUPS = ("13-17", "23-27", "33 and over")

PLACE = "blogs/blogs_100users_x300.parquet"

BACKGROUND = "blogs/blogs_background_200users_x60.parquet"

LONGEST = 2**31
"""Above every number that a post bears within its blog."""

COPY = 0.5
"""The share of posts that another blog has too above which a blog is its copy."""

WORDS: Mapping[str, int] = MappingProxyType({"age_group": 20_000, "next_word": 5_000})
"""Words that have tokens of their own unless a plan says otherwise, by task."""


@final
@dataclass(frozen=True, slots=True)
class Blogs(DataSource):
    """What bloggers write, user = blogger; the latest fifth of each one's posts is the test.

    The corpus has some blogs under several numbers: of those the first is kept and the copies
    are left out, 11 of the 100 bloggers, for nobody could tell who of them sent an update.

    Times are places in a blog, records are posts, and embeddings tell how and on which day of
    the week a post is written (see `data.reading.style`). Attributes are the blogger's gender
    and, unless it is the label, age group. The background is of 200 other bloggers, in another
    file; without that file there is none, and embeddings are fitted to the training posts.
    Examples of it that are word for word also private ones are left out.

    Args:
        task: "age_group": an example is a post, its label the blogger's age group. A blogger
            has one label, so a client that stands for a user holds one label only.
            "next_word": an example is some words of a post, its label the word after them, as
            in Orekondy et al. 2018 (Gradient-Leaks, section 5.1), who have 5,000 words and
            windows of single sentences, not of posts. Labels are words from the most frequent
            one on, called "word 1", "word 2" and so on: they are words of real people.
        vocabulary: how many words have tokens of their own, and are labels where the next word
            is; None = 20,000, or 5,000 where the next word is the label.
        tokens: how many words of a post are read.
        context: how many words the next one is foretold from, at most.
        stride: every how many-th word of a post is to be foretold.

    """

    task: Literal["age_group", "next_word"] = "age_group"
    vocabulary: int | None = None
    tokens: int = 100
    context: int = 10
    stride: int = 4

    name: ClassVar[str] = "blogs"
    source: ClassVar[str] = (
        "Schler, Koppel, Argamon, Pennebaker 2006, Blog Authorship Corpus; non-commercial "
        "research use; posts of real people: never quote them"
    )

    def __post_init__(self) -> None:
        """Refuse settings that leave no word to read or to foretell."""
        TextSettings(self._words, self.tokens)
        WindowSettings(self.context, self.stride)
        if self.task == "next_word" and self.stride >= self.tokens:
            raise PlanError(
                f"blogs: of {self.tokens} tokens none is number {self.stride}, the first to be "
                "foretold: take a smaller stride, or more tokens"
            )

    def load(self, folder: Path | None) -> Dataset:
        """Read `blogs/*.parquet`; they cannot be fetched in this form."""
        path = need_file(folder, (PLACE,), self.source)
        table = _without_copies(path, read_table(path))
        users = numbered(path, table, "user")
        order = torch.from_numpy(whole_numbers(path, table, "seq", LONGEST))
        late = latest(users.numbers, order)
        if not bool(late.any()):
            raise DataError(f"{path} has no blogger of 5 posts or more: none can be held out")
        train, test = _posts(path, table[(~late).numpy()]), _posts(path, table[late.numpy()])
        vocabulary = self._vocabulary(train.words)
        windows, tested = self._windows(train, vocabulary), self._windows(test, vocabulary)
        others = _background(folder)
        private = torch.cat([windows.examples.inputs, tested.examples.inputs])
        return Dataset(
            windows.examples,
            tested.examples,
            Task(tuple(private.shape[1:]), self._class_names(vocabulary), len(vocabulary)),
            users=users.numbers[~late][windows.texts],
            user_names=users.names,
            times=order[~late][windows.texts],
            records=windows.texts,
            embeddings=style_vectors(
                train.writings, (train if others is None else others).writings
            ),
            attributes=self._attributes(path, table, users),
            background=None
            if others is None
            else _without(private, self._windows(others, vocabulary).examples),
        )

    @property
    def _words(self) -> int:
        return WORDS[self.task] if self.vocabulary is None else self.vocabulary

    def _vocabulary(self, texts: list[list[str]]) -> Vocabulary:
        learnt = most_frequent_first if self.task == "next_word" else alphabetical
        return learnt(texts, self._words)

    def _windows(self, posts: "_Posts", vocabulary: Vocabulary) -> Windows:
        tokens = vocabulary.rows(posts.words, self.tokens)
        if self.task == "next_word":
            return next_words(tokens, WindowSettings(self.context, self.stride))
        return Windows(Examples(tokens, posts.ages), torch.arange(len(tokens)))

    def _class_names(self, vocabulary: Vocabulary) -> tuple[str, ...]:
        if self.task == "next_word":
            return tuple(f"word {rank}" for rank in range(1, len(vocabulary.numbers) + 1))
        return AGE_GROUPS

    def _attributes(
        self, path: Path, table: pd.DataFrame, users: Numbered
    ) -> Mapping[str, tuple[str, ...]]:
        if self.task == "age_group":
            return attributes_of(path, table, ("gender",), users)
        groups = whole_numbers(path, table, "label", len(AGE_GROUPS))
        told = table.assign(age_group=np.array(AGE_GROUPS)[groups])
        return attributes_of(path, told, ("gender", "age_group"), users)


@dataclass(frozen=True, slots=True)
class _Posts:
    """Posts as they are written, as lists of words, and by the age group of their bloggers."""

    writings: Writings
    words: list[list[str]]
    ages: Int64[Tensor, " posts"]


def _posts(path: Path, table: pd.DataFrame) -> _Posts:
    need_columns(path, table, ("date",))
    texts, days = words(path, table, "text"), dates(path, "date", table["date"])
    if days.isna().any():
        raise DataError(f"{path}: column 'date' must not have empty cells: drop those rows")
    ages = torch.from_numpy(whole_numbers(path, table, "label", len(AGE_GROUPS)))
    return _Posts(Writings(texts, days), words_of(texts), ages)


def _background(folder: Path | None) -> _Posts | None:
    path = find_file(folder, (BACKGROUND,))
    return None if path is None else _posts(path, read_table(path))


def _without(private: Int64[Tensor, "private tokens"], public: Examples) -> Examples:
    """The public examples whose input no private one has too, such as a turn of phrase."""
    return public.take(~torch.isin(content_keys(public.inputs), content_keys(private)))


def _without_copies(path: Path, table: pd.DataFrame) -> pd.DataFrame:
    """Leave out bloggers most of whose posts stand under an earlier name too."""
    need_columns(path, table, ("text", "user"))
    first = table.groupby("text")["user"].transform("min")
    copied = (first != table["user"]).groupby(table["user"]).transform("mean")
    return table[copied <= COPY].reset_index(drop=True)
