import pytest

from overheard.core.errors import DataError
from overheard.data.reading.texts import (
    TextSettings,
    ranked_vocabulary,
    split_words,
    tokenise_texts,
)


def test_words_are_tokenised_padded_and_cut() -> None:
    texts = tokenise_texts(
        ["The cat sat", "the the cat"], ["a dog the cat the", ""], TextSettings(10, 4)
    )
    # Alphabetical: cat 2, sat 3, the 4; padding 0, unknown 1; one-letter words do not count.
    assert texts.vocabulary == 5
    assert texts.train.tolist() == [[4, 2, 3, 0], [4, 4, 2, 0]]
    assert texts.test.tolist() == [[1, 4, 2, 4], [1, 0, 0, 0]]


def test_only_the_most_frequent_words_are_in_the_vocabulary() -> None:
    texts = tokenise_texts(["aa aa bb", "aa bb cc"], ["aa bb cc"], TextSettings(2, 3))
    assert texts.vocabulary == 4
    assert texts.test.tolist() == [[2, 3, 1]]


def test_words_may_be_numbered_by_frequency() -> None:
    texts = split_words(["zz bb zz aa", "zz cc bb"])
    vocabulary = ranked_vocabulary(texts, 3)
    # zz occurs three times, bb twice, aa and cc once: aa is first in the alphabet.
    assert dict(vocabulary.numbers) == {"zz": 2, "bb": 3, "aa": 4}
    assert len(vocabulary) == 5
    assert vocabulary.encode(texts, 3).tolist() == [[2, 3, 2], [2, 1, 3]]


def test_refuses_texts_without_words() -> None:
    with pytest.raises(DataError, match="no words"):
        tokenise_texts(["", "?!"], ["aa"], TextSettings())
    with pytest.raises(DataError, match="no words"):
        ranked_vocabulary(split_words(["", "?!"]), 3)
