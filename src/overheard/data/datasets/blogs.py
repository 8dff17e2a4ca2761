"""Blogs: posts of a hundred people over time, with the age group and gender of each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal, final

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int64
from scipy.linalg import eigh
from torch import Tensor

from overheard.core.errors import DataError, PlanError
from overheard.core.examples import Examples
from overheard.core.settings import Positive, Settings
from overheard.core.task import Task
from overheard.data.content_hash import content_hashes
from overheard.data.dataset import Dataset, DataSource
from overheard.data.holdout import hold_out_latest
from overheard.data.reading.attributes import values_of_users
from overheard.data.reading.folder import find_file, require_file
from overheard.data.reading.tables import (
    CategoricalColumn,
    categorical_column,
    integer_column,
    read_table,
    require_columns,
    text_column,
)
from overheard.data.reading.texts import (
    PADDING,
    RESERVED_TOKENS,
    Vocabulary,
    alphabetical_vocabulary,
    ranked_vocabulary,
)
from overheard.data.reading.times import parse_dates

if TYPE_CHECKING:  # pandas is large, and most audits read no table
    import pandas


HASH_BITS = 10
"""Bits of the hash of a character 3-gram."""

BUCKETS = 2**HASH_BITS
"""The number of different hashes."""

STYLE_DIMS = 64
"""Leading singular vectors that are kept."""

DAYS = 7
"""Days in a week."""

TEXTS_PER_CHUNK = 1000
"""Texts processed at a time, which bounds the memory to a few tens of MB."""

FIBONACCI = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio, a multiplier for even hashes (Knuth 1973, 6.4)."""

MIN_DEVIATION = 1e-6
"""A deviation below this is a rounding error of a constant column."""


@dataclass(frozen=True, slots=True)
class DatedTexts:
    """Texts, and the date of each."""

    texts: Sequence[str]
    dates: "pandas.Series"


def style_vectors(writings: DatedTexts, fitted_to: DatedTexts) -> Float32[Tensor, "texts dims"]:
    """Return a vector per text: its character 3-grams, its weekday and its length.

    Case, digits, punctuation and blanks count; a model of lower-cased words sees none of
    these. Since 3-grams also contain the letters of words, the topic of a text shows in both.

    Steps: take log(1 + count) of each hashed 3-gram; weight it by inverse document frequency;
    scale each text to length 1; project on the leading right singular vectors; standardise
    every column. All of this is fitted only to the texts of `fitted_to`. 30,000 texts of 740
    characters take 3 s on one core, fitted to 12,000 others.
    """
    document_counts = sum((counts > 0).sum(0) for counts in _trigram_counts(fitted_to.texts))
    rarity = np.log((1 + len(fitted_to.texts)) / (1 + document_counts)) + 1
    weights = rarity.astype(np.float32)  # (buckets,)
    gram = np.zeros((BUCKETS, BUCKETS), np.float32)
    for counts in _trigram_counts(fitted_to.texts):
        scaled = _weighted(counts, weights)
        gram += scaled.T @ scaled
    _, vectors = eigh(gram, subset_by_index=(BUCKETS - STYLE_DIMS, BUCKETS - 1))
    # The sign of a singular vector is arbitrary: make its largest entry positive.
    vectors *= np.sign(vectors[np.abs(vectors).argmax(0), np.arange(STYLE_DIMS)])
    unscaled, fit = (
        _unscaled_vectors(each, weights, vectors) for each in (writings, fitted_to)
    )
    deviation = fit.std(0)
    # A constant column becomes 0.
    standard = (unscaled - fit.mean(0)) * np.where(
        deviation > MIN_DEVIATION, 1 / deviation.clip(MIN_DEVIATION), 0
    )
    return torch.from_numpy(standard.astype(np.float32))


def _unscaled_vectors(
    writings: DatedTexts,
    weights: Float32[np.ndarray, " buckets"],
    vectors: Float32[np.ndarray, "buckets dims"],
) -> Float[np.ndarray, "texts columns"]:
    projected = [
        _weighted(counts, weights) @ vectors for counts in _trigram_counts(writings.texts)
    ]
    days = np.eye(DAYS)[writings.dates.dt.day_of_week.to_numpy(np.int64)]
    lengths = np.log1p([len(text) for text in writings.texts])[:, None]
    return np.concatenate([np.concatenate(projected), days, lengths], axis=1)


def _weighted(
    counts: Int64[np.ndarray, "texts buckets"], weights: Float32[np.ndarray, " buckets"]
) -> Float32[np.ndarray, "texts buckets"]:
    weighted = np.log1p(counts, dtype=np.float32) * weights
    lengths = np.linalg.norm(weighted, axis=1, keepdims=True)
    # A text of fewer than three characters has no 3-gram, and its vector stays 0.
    scaled: Float32[np.ndarray, "texts buckets"] = weighted / np.where(lengths > 0, lengths, 1)
    return scaled


def _trigram_counts(texts: Sequence[str]) -> Iterator[Int64[np.ndarray, "texts buckets"]]:
    """Yield the count of each hashed 3-gram in each text, some texts at a time."""
    for start in range(0, len(texts), TEXTS_PER_CHUNK):
        encoded_texts = [
            text_numbers.encode("latin-1", "replace")
            for text_numbers in texts[start : start + TEXTS_PER_CHUNK]
        ]
        letters = np.frombuffer(b"".join(encoded_texts), np.uint8).astype(np.uint64)
        text_numbers = np.repeat(
            np.arange(len(encoded_texts)), [len(each) for each in encoded_texts]
        )
        grams = letters[:-2] << np.uint64(16) | letters[1:-1] << np.uint64(8) | letters[2:]
        hashed = (grams * FIBONACCI >> np.uint64(64 - HASH_BITS)).astype(np.int64)
        is_within_text = text_numbers[:-2] == text_numbers[2:]
        indices = text_numbers[:-2][is_within_text] * BUCKETS + hashed[is_within_text]
        counts = np.bincount(indices, minlength=len(encoded_texts) * BUCKETS)
        yield counts.reshape(len(encoded_texts), BUCKETS)


AGE_GROUPS = ("13-17", "23-27", "33 and over")

POSTS_FILE = "blogs/blogs_100users_x300.parquet"

BACKGROUND_FILE = "blogs/blogs_background_200users_x60.parquet"

MAX_POSITION = 2**31
"""An upper bound of the number of a post within its blog."""

COPY_THRESHOLD = 0.5
"""A blog is a copy of another one if it shares more than this part of its posts."""

VOCABULARY_SIZES: Mapping[str, int] = MappingProxyType(
    {"age_group": 20_000, "next_word": 5_000}
)
"""The default number of words in the vocabulary, by task."""


@final
@dataclass(frozen=True, slots=True)
class Blogs(DataSource):
    """Blog posts; user = blogger. The latest fifth of each blogger's posts is the test part.

    The corpus has some blogs under several numbers. The first is kept and the copies are left
    out (11 of the 100 bloggers), since their updates could not be attributed to one user.

    Times are positions in a blog, and records are posts. Embeddings give the style and the
    weekday of a post (see `style_vectors`). Attributes are the blogger's gender and,
    unless it is the label, age group. The background has 200 other bloggers, in another file.
    Without that file there is none, and embeddings are fitted to the training posts.
    Background examples that equal a private one are left out.

    Args:
        task: "age_group": an example is a post, its label the blogger's age group. A blogger
            has one label, so a client that stands for a user holds one label only.
            "next_word": an example is a window of words, its label the next word, as in
            Orekondy et al. 2018 (Gradient-Leaks, section 5.1), who have 5,000 words and cut
            windows from sentences, not from posts. Labels are named "word 1", "word 2", ... by
            falling frequency, as the words are those of real people.
        vocabulary: the number of words in the vocabulary, which are also the labels of
            "next_word"; None = 20,000, or 5,000 for "next_word".
        tokens: the number of words that are read of a post.
        context: the most words in a window.
        stride: every `stride`-th word of a post is a label.

    """

    task: Literal["age_group", "next_word"] = "age_group"
    vocabulary: Positive | None = None
    tokens: Positive = 100
    context: Positive = 10
    stride: Positive = 4

    name: ClassVar[str] = "blogs"
    source: ClassVar[str] = (
        "Schler, Koppel, Argamon, Pennebaker 2006, Blog Authorship Corpus; non-commercial "
        "research use; posts of real people: never quote them"
    )

    def check_together(self) -> None:
        """Refuse a stride that leaves no label."""
        if self.task == "next_word" and self.stride >= self.tokens:
            raise PlanError(
                f"blogs: stride {self.stride} leaves no label in {self.tokens} tokens: use a "
                "smaller stride, or more tokens"
            )

    def load(self, folder: Path | None) -> Dataset:
        """Read `blogs/*.parquet`, which cannot be downloaded in this form."""
        path = require_file(folder, (POSTS_FILE,), self.source)
        table = _drop_copied_blogs(path, read_table(path))
        users = categorical_column(path, table, "user")
        order = torch.from_numpy(integer_column(path, table, "seq", MAX_POSITION))
        is_test = hold_out_latest(users.numbers, order)
        if not bool(is_test.any()):
            raise DataError(
                f"{path} has no blogger with 5 posts or more, so none can be held out: get a "
                "new copy"
            )
        train, test = (
            _read_posts(path, table[(~is_test).numpy()]),
            _read_posts(path, table[is_test.numpy()]),
        )
        vocabulary = self._vocabulary(path, train.writings.texts)
        windows, test_windows = (
            self._windows(train, vocabulary),
            self._windows(test, vocabulary),
        )
        background = _read_background(folder)
        private = torch.cat([windows.examples.inputs, test_windows.examples.inputs])
        return Dataset(
            windows.examples,
            test_windows.examples,
            Task(tuple(private.shape[1:]), self._class_names(vocabulary), len(vocabulary)),
            users=users.numbers[~is_test][windows.texts],
            user_names=users.names,
            times=order[~is_test][windows.texts],
            records=windows.texts,
            embeddings=style_vectors(
                train.writings, (train if background is None else background).writings
            ),
            attributes=self._attributes(path, table, users),
            background=None
            if background is None
            else _drop_private(private, self._windows(background, vocabulary).examples),
            # The words are those of real people, so they stay numbers.
            token_words=vocabulary.token_words(
                are_named=False, are_labels=self.task == "next_word"
            ),
        )

    @property
    def _vocabulary_size(self) -> int:
        return VOCABULARY_SIZES[self.task] if self.vocabulary is None else self.vocabulary

    def _vocabulary(self, path: Path, texts: Sequence[str]) -> Vocabulary:
        build = ranked_vocabulary if self.task == "next_word" else alphabetical_vocabulary
        return build(path, texts, self._vocabulary_size)

    def _windows(self, posts: "_Posts", vocabulary: Vocabulary) -> "TextWindows":
        tokens = vocabulary.encode(posts.writings.texts, self.tokens)
        if self.task == "next_word":
            return cut_windows(tokens, WindowSettings(self.context, self.stride))
        return TextWindows(Examples(tokens, posts.ages), torch.arange(len(tokens)))

    def _class_names(self, vocabulary: Vocabulary) -> tuple[str, ...]:
        if self.task == "next_word":
            return tuple(f"word {rank}" for rank in range(1, len(vocabulary.numbers) + 1))
        return AGE_GROUPS

    def _attributes(
        self, path: Path, table: "pandas.DataFrame", users: CategoricalColumn
    ) -> Mapping[str, tuple[str, ...]]:
        columns = {"gender": categorical_column(path, table, "gender")}
        if self.task != "age_group":
            groups = integer_column(path, table, "label", len(AGE_GROUPS))
            with_groups = table.assign(age_group=np.array(AGE_GROUPS)[groups])
            columns["age_group"] = categorical_column(path, with_groups, "age_group")
        return values_of_users(path, columns, users)


@dataclass(frozen=True, slots=True)
class _Posts:
    """Posts: their texts and dates, and the age groups of their bloggers."""

    writings: DatedTexts
    ages: Int64[Tensor, " posts"]


def _read_posts(path: Path, table: "pandas.DataFrame") -> _Posts:
    require_columns(path, table, ("date",))
    texts, days = text_column(path, table, "text"), parse_dates(path, "date", table["date"])
    if days.isna().any():
        raise DataError(f"{path}: column 'date' must not have empty cells: drop those rows")
    ages = torch.from_numpy(integer_column(path, table, "label", len(AGE_GROUPS)))
    return _Posts(DatedTexts(texts, days), ages)


def _read_background(folder: Path | None) -> _Posts | None:
    path = find_file(folder, (BACKGROUND_FILE,))
    return None if path is None else _read_posts(path, read_table(path))


def _drop_private(private: Int64[Tensor, "private tokens"], public: Examples) -> Examples:
    """Leave out public examples whose input equals a private one, such as a common phrase."""
    return public.take(~torch.isin(content_hashes(public.inputs), content_hashes(private)))


def _drop_copied_blogs(path: Path, table: "pandas.DataFrame") -> "pandas.DataFrame":
    """Leave out bloggers most of whose posts also exist under an earlier name."""
    require_columns(path, table, ("text", "user"))
    first_user = table.groupby("text")["user"].transform("min")
    copied_share = (first_user != table["user"]).groupby(table["user"]).transform("mean")
    return table[copied_share <= COPY_THRESHOLD].reset_index(drop=True)


@dataclass(frozen=True, slots=True)
class WindowSettings(Settings):
    """How texts are cut into windows.

    Args:
        context: the most words in a window.
        stride: every `stride`-th word is a label. The first is word `stride`, counted from 0,
            so that a window has `stride` words or more, or `context` if that is less.

    """

    context: Positive = 10
    stride: Positive = 4


@dataclass(frozen=True, slots=True)
class TextWindows:
    """The windows of several texts, text by text, each from its start.

    Args:
        examples: the windows and their labels, the next words.
        texts: the number of the text from which each window is cut.

    """

    examples: Examples
    texts: Int[Tensor, " examples"]


def cut_windows(tokens: Int64[Tensor, "texts tokens"], settings: WindowSettings) -> TextWindows:
    """Cut texts into windows: every `stride`-th word is a label, the words before it its input.

    Label i is token i + RESERVED. A window is padded at its end if fewer words precede its
    label. Windows whose next word is outside the vocabulary are left out.

    Raises:
        DataError: if no window is left.

    """
    length = tokens.shape[1]
    positions = range(settings.stride, length, settings.stride)
    windows = torch.full((len(tokens), len(positions), settings.context), PADDING)
    for number, position in enumerate(positions):
        before = tokens[:, max(0, position - settings.context) : position]
        windows[:, number, : before.shape[1]] = before
    next_tokens = tokens[:, settings.stride :: settings.stride]  # (texts, positions)
    is_known = next_tokens >= RESERVED_TOKENS
    if not bool(is_known.any()):
        raise DataError(
            f"no text has a word of the vocabulary at position {settings.stride} or a multiple "
            "of it: use a smaller stride, or more tokens"
        )
    numbers = torch.arange(len(tokens))[:, None].expand_as(next_tokens)
    return TextWindows(
        Examples(windows[is_known], next_tokens[is_known] - RESERVED_TOKENS), numbers[is_known]
    )
