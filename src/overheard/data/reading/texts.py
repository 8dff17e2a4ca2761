"""Tokenisation of texts, by a vocabulary fitted to the training texts."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from overheard.core.errors import DataError
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.settings import Positive, Settings
from overheard.disk.limits import TABLE, refuse_large

PADDING = 0
"""The token that pads a text at its end."""

UNKNOWN = 1
"""The token of all words outside the vocabulary, and of a text without words."""

RESERVED_TOKENS = 2
"""The number of tokens that are not words; the first word has this number."""

WORD = re.compile(r"\b\w\w+\b")

WORD_BYTES = 160
"""Bytes of memory that a different word takes while words are counted, about."""

WORDS_PER_CHECK = 100_000
"""Words that are counted between two looks at the memory that they take."""


@dataclass(frozen=True, slots=True)
class TextSettings(Settings):
    """Settings of tokenisation.

    Args:
        vocabulary: the number of words in the vocabulary, the most frequent ones.
        tokens: the number of words that are read of a text, from its start.

    """

    vocabulary: Positive = 20_000
    tokens: Positive = 40


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of a vocabulary, and the token of each."""

    numbers: Mapping[str, int]

    def __len__(self) -> int:
        """Return the number of tokens, including padding and unknown."""
        return RESERVED_TOKENS + len(self.numbers)

    def token_words(self, *, are_named: bool, are_labels: bool = False) -> TokenWords:
        """Return the words of the tokens.

        Args:
            are_named: whether the words may be named, or stay numbers.
            are_labels: whether label i is the word of token i + `RESERVED_TOKENS`.

        """
        words = tuple(sorted(self.numbers, key=self.numbers.__getitem__)) if are_named else ()
        first_label = RESERVED_TOKENS if are_labels else None
        return TokenWords(len(self), RESERVED_TOKENS, words, first_label)

    def encode(self, texts: Sequence[str], tokens: int) -> Int64[Tensor, "examples tokens"]:
        """Return the tokens of the first words of each text."""
        rows = torch.full((len(texts), tokens), PADDING)
        for row, text in enumerate(texts):
            words = islice(split_words(text), tokens)
            read = [self.numbers.get(word, UNKNOWN) for word in words] or [UNKNOWN]
            rows[row, : len(read)] = torch.tensor(read)
        return rows


@dataclass(frozen=True, slots=True)
class TokenisedTexts:
    """Training and test texts as tokens of one vocabulary.

    Args:
        train: tokens of the training texts, to which the vocabulary was fitted.
        test: tokens of the test texts.
        words: the words of the tokens.

    """

    train: Int64[Tensor, "train_examples tokens"]
    test: Int64[Tensor, "test_examples tokens"]
    words: TokenWords

    @property
    def vocabulary(self) -> int:
        """The number of tokens, including padding and unknown."""
        return self.words.tokens


def tokenise_texts(
    path: Path, train: Sequence[str], test: Sequence[str], settings: TextSettings
) -> TokenisedTexts:
    """Tokenise all texts by the vocabulary of the training texts.

    Raises:
        DataError: if the training texts have no words, or too many different ones.

    """
    vocabulary = alphabetical_vocabulary(path, train, settings.vocabulary)
    return TokenisedTexts(
        vocabulary.encode(train, settings.tokens),
        vocabulary.encode(test, settings.tokens),
        vocabulary.token_words(are_named=True),
    )


def split_words(text: str) -> Iterator[str]:
    """Yield the words of a text, as scikit-learn's CountVectorizer splits it.

    Words are lower-cased runs of two or more letters, digits or underscores.
    """
    return (match[0] for match in WORD.finditer(text.lower()))


def alphabetical_vocabulary(path: Path, texts: Sequence[str], size: int) -> Vocabulary:
    """Return the vocabulary of the most frequent words of a file, in alphabetical order.

    Raises:
        DataError: if the texts have no words, or too many different ones.

    """
    counts = _count_words(path, texts)
    words = sorted(counts)
    totals = np.array([counts[word] for word in words])
    # Of equally frequent words, those are chosen that scikit-learn's CountVectorizer chooses.
    chosen = np.sort((-totals).argsort()[:size])
    return _numbered([words[place] for place in chosen.tolist()])


def ranked_vocabulary(path: Path, texts: Sequence[str], size: int) -> Vocabulary:
    """Return the vocabulary of the most frequent words of a file, by falling frequency.

    Equally frequent words are in alphabetical order.

    Raises:
        DataError: if the texts have no words, or too many different ones.

    """
    counts = _count_words(path, texts)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return _numbered(ranked[:size])


def _count_words(path: Path, texts: Sequence[str]) -> Counter[str]:
    words, counts = chain.from_iterable(map(split_words, texts)), Counter[str]()
    while some := list(islice(words, WORDS_PER_CHECK)):
        counts.update(some)
        memory = WORD_BYTES * len(counts)
        refuse_large(f"{path}: the list of its different words", memory, DataError, part=TABLE)
    if not counts:
        raise DataError(
            f"{path}: the training texts have no words: choose another column or file"
        )
    return counts


def _numbered(words: list[str]) -> Vocabulary:
    return Vocabulary({word: RESERVED_TOKENS + rank for rank, word in enumerate(words)})
