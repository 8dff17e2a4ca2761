"""Turns texts into token numbers, by a vocabulary learnt from the training texts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from jaxtyping import Int64
from sklearn.feature_extraction.text import CountVectorizer
from torch import Tensor

from overheard.core.errors import DataError, PlanError

PADDING = 0
"""The token after the end of a text."""

UNKNOWN = 1
"""The token of every word outside the vocabulary; also of a text without words."""

RESERVED = 2
"""Tokens that stand for no word: the first word has this number."""


@dataclass(frozen=True, slots=True)
class TextSettings:
    """How texts become tokens.

    Args:
        vocabulary: how many words have tokens of their own: the most frequent ones.
        tokens: how many words of a text are read, from its start.

    """

    vocabulary: int = 20_000
    tokens: int = 40

    def __post_init__(self) -> None:
        """Refuse a vocabulary or a text without words."""
        if self.vocabulary < 1 or self.tokens < 1:
            raise PlanError(
                f"vocabulary and tokens must be 1 or more, got {self.vocabulary} and "
                f"{self.tokens}"
            )


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words that have tokens of their own, and which."""

    numbers: Mapping[str, int]

    def __len__(self) -> int:
        """How many tokens there are, padding and unknown included."""
        return RESERVED + len(self.numbers)

    def rows(self, texts: Sequence[list[str]], tokens: int) -> Int64[Tensor, "examples tokens"]:
        """The first so many words of each text as token numbers."""
        rows = torch.full((len(texts), tokens), PADDING)
        for row, words in enumerate(texts):
            read = [self.numbers.get(word, UNKNOWN) for word in words[:tokens]] or [UNKNOWN]
            rows[row, : len(read)] = torch.tensor(read)
        return rows


@dataclass(frozen=True, slots=True)
class TokenisedTexts:
    """Two sets of texts as token numbers, by one vocabulary.

    Args:
        train: the texts from which the vocabulary was learnt.
        test: the others.
        vocabulary: how many tokens there are, padding and unknown included.

    """

    train: Int64[Tensor, "train_examples tokens"]
    test: Int64[Tensor, "test_examples tokens"]
    vocabulary: int


def tokenised(
    train: Sequence[str], test: Sequence[str], settings: TextSettings
) -> TokenisedTexts:
    """Number the words of all texts by the vocabulary of the training texts.

    Raises:
        DataError: if the training texts have no words.

    """
    train_words = words_of(train)
    vocabulary = alphabetical(train_words, settings.vocabulary)
    return TokenisedTexts(
        vocabulary.rows(train_words, settings.tokens),
        vocabulary.rows(words_of(test), settings.tokens),
        len(vocabulary),
    )


def words_of(texts: Sequence[str]) -> list[list[str]]:
    """The words of each text, in order, as scikit-learn tells them apart.

    They are lower-cased runs of two or more letters, digits or underscores.
    """
    split = CountVectorizer().build_analyzer()
    return [split(text) for text in texts]


def alphabetical(texts: Sequence[list[str]], most: int) -> Vocabulary:
    """The so many most frequent words of these texts, numbered by the alphabet.

    Raises:
        DataError: if the texts have no words.

    """
    # The texts are split already: the vectoriser takes the lists of words as they are.
    vectorizer = CountVectorizer(analyzer=_as_is, max_features=most)
    try:
        vectorizer.fit(texts)
    except ValueError as failure:
        raise DataError("the training texts have no words to learn from") from failure
    return _numbered(vectorizer.get_feature_names_out().tolist())


def most_frequent_first(texts: Sequence[list[str]], most: int) -> Vocabulary:
    """The so many most frequent words of these texts, numbered by how frequent they are.

    Of equally frequent words the first in the alphabet comes first.

    Raises:
        DataError: if the texts have no words.

    """
    counts = Counter(chain.from_iterable(texts))
    if not counts:
        raise DataError("the training texts have no words to learn from")
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return _numbered(ranked[:most])


def _as_is(words: list[str]) -> list[str]:
    return words


def _numbered(words: list[str]) -> Vocabulary:
    return Vocabulary({word: RESERVED + place for place, word in enumerate(words)})
