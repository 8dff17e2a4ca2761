"""Turns texts into token numbers, by a vocabulary learnt from the training texts."""

from collections.abc import Sequence
from dataclasses import dataclass

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

    Words are scikit-learn's: lower-cased runs of two or more letters, digits or underscores.

    Raises:
        DataError: if the training texts have no words.

    """
    split = CountVectorizer().build_analyzer()
    train_words = [split(text) for text in train]
    # The texts are split once: the vectoriser takes the lists of words as they are.
    vectorizer = CountVectorizer(analyzer=_as_is, max_features=settings.vocabulary)
    try:
        vectorizer.fit(train_words)
    except ValueError as failure:
        raise DataError("the training texts have no words to learn from") from failure
    numbers = {
        word: RESERVED + place
        for place, word in enumerate(vectorizer.get_feature_names_out().tolist())
    }
    return TokenisedTexts(
        _numbered(train_words, numbers, settings.tokens),
        _numbered([split(text) for text in test], numbers, settings.tokens),
        RESERVED + len(numbers),
    )


def _as_is(words: list[str]) -> list[str]:
    return words


def _numbered(
    texts: Sequence[list[str]], numbers: dict[str, int], tokens: int
) -> Int64[Tensor, "examples tokens"]:
    rows = torch.full((len(texts), tokens), PADDING)
    for row, words in enumerate(texts):
        read = [numbers.get(word, UNKNOWN) for word in words[:tokens]] or [UNKNOWN]
        rows[row, : len(read)] = torch.tensor(read)
    return rows
