"""Reading texts as tokens."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from overheard.core.errors import DataError
from overheard.data.datasets.blogs import (
    DAYS,
    STYLE_DIMS,
    DatedTexts,
    WindowSettings,
    cut_windows,
    style_vectors,
)
from overheard.data.reading.texts import (
    RESERVED_TOKENS,
    UNKNOWN,
    TextSettings,
    alphabetical_vocabulary,
    ranked_vocabulary,
    tokenise_texts,
)
from overheard.disk.limits import VARIABLE

PATH = Path("notes.csv")


def test_words_are_tokenised_padded_and_cut() -> None:
    texts = tokenise_texts(
        PATH, ["The cat sat", "the the cat"], ["a dog the cat the", ""], TextSettings(10, 4)
    )
    # Alphabetical: cat 2, sat 3, the 4; padding 0, unknown 1; one-letter words do not count.
    assert texts.vocabulary == 5
    assert texts.train.tolist() == [[4, 2, 3, 0], [4, 4, 2, 0]]
    assert texts.test.tolist() == [[1, 4, 2, 4], [1, 0, 0, 0]]


def test_only_the_most_frequent_words_are_in_the_vocabulary() -> None:
    texts = tokenise_texts(PATH, ["aa aa bb", "aa bb cc"], ["aa bb cc"], TextSettings(2, 3))
    assert texts.vocabulary == 4
    assert texts.test.tolist() == [[2, 3, 1]]


def test_words_are_split_and_chosen_as_by_scikit_learn() -> None:
    draw = np.random.default_rng(0).poisson(30, (200, 40))
    texts = [" ".join(f"Wörd_{number}" for number in row) for row in draw]
    texts += ["It's a\u00adb, 中文 ÉTÉ x1 _ __ 4 42 İzmir 😀 a😀bc", "\ttab\x85tab-stop ² ½ ﬁx"]
    for size in (5, 20, 35, 100):
        expected = CountVectorizer(max_features=size).fit(texts).get_feature_names_out()
        assert list(alphabetical_vocabulary(PATH, texts, size).numbers) == expected.tolist()


def test_refuses_too_many_different_words(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [" ".join(f"w{number}" for number in range(1_000))]
    monkeypatch.setenv(VARIABLE, "600KB")
    with pytest.raises(
        DataError, match=r"notes.csv: .* different words takes 160000 .* --max-unpacked 1GB"
    ):
        alphabetical_vocabulary(PATH, texts, 10)
    monkeypatch.setenv(VARIABLE, "640KB")
    assert len(alphabetical_vocabulary(PATH, texts, 10).numbers) == 10


def test_words_may_be_numbered_by_frequency() -> None:
    texts = ["zz bb zz aa", "zz cc bb"]
    vocabulary = ranked_vocabulary(PATH, texts, 3)
    # zz occurs three times, bb twice, aa and cc once: aa is first in the alphabet.
    assert dict(vocabulary.numbers) == {"zz": 2, "bb": 3, "aa": 4}
    assert len(vocabulary) == 5
    assert vocabulary.encode(texts, 3).tolist() == [[2, 3, 2], [2, 1, 3]]


def test_refuses_texts_without_words() -> None:
    with pytest.raises(DataError, match="no words"):
        tokenise_texts(PATH, ["", "?!"], ["aa"], TextSettings())
    with pytest.raises(DataError, match="no words"):
        ranked_vocabulary(PATH, ["", "?!"], 3)


def test_windows_are_padded_at_their_end_and_labelled_by_the_next_word() -> None:
    tokens = torch.tensor([[2, 3, 4, 5, 6, 7], [8, 1, 9, 0, 0, 0]])
    windows = cut_windows(tokens, WindowSettings(context=3, stride=2))
    # Text 0: word 2 (token 4) after 2 3, word 4 (token 6) after 3 4 5. Text 1: word 2 (token 9)
    # after 8 and an unknown word; the text ends before word 4.
    assert windows.examples.inputs.tolist() == [[2, 3, 0], [3, 4, 5], [8, 1, 0]]
    assert windows.examples.labels.tolist() == [2, 4, 7]
    assert windows.texts.tolist() == [0, 0, 1]


def test_refuses_texts_without_a_next_word() -> None:
    for tokens in ([[2, 3, 4]], [[1, 1, 1, 1, 1]], [[2, 3, 4, 0, 0]]):
        with pytest.raises(DataError, match="smaller stride"):
            cut_windows(torch.tensor(tokens), WindowSettings(context=2, stride=3))


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(1, 6), st.integers(1, 6)
)
def test_each_window_precedes_its_label_in_the_text(
    words: list[int], context: int, stride: int
) -> None:
    positions = [p for p in range(stride, len(words), stride) if words[p] > UNKNOWN]
    if not positions:
        return
    windows = cut_windows(torch.tensor([words]), WindowSettings(context, stride))
    assert (windows.examples.labels + RESERVED_TOKENS).tolist() == [words[p] for p in positions]
    for row, position in zip(windows.examples.inputs.tolist(), positions, strict=True):
        before = words[max(0, position - context) : position]
        assert row == before + [0] * (context - len(before))


def dated_texts(*texts: str, day: str = "2004-08-02") -> DatedTexts:
    return DatedTexts(texts, pd.to_datetime(pd.Series([day] * len(texts))))


FITTED = DatedTexts(
    (
        "well... i dunno!!! what now???",
        "I went to the market. It was closed.",
        "ok so like, 3 PM @ the mall :-)",
        "The weather was fine; we walked home.",
        "!!! NO WAY !!!",
    ),
    pd.to_datetime(pd.Series([f"2004-08-0{day}" for day in range(2, 7)])),
)


def cosine(one: str, other: str) -> float:
    first, second = style_vectors(dated_texts(one, other), FITTED)[:, :STYLE_DIMS]
    return float(torch.nn.functional.cosine_similarity(first, second, dim=0))


def test_the_same_words_in_another_style_have_another_vector() -> None:
    plain, loud = "what now is it closed", "WHAT NOW??? IS IT CLOSED!!!"
    assert cosine(plain, plain) > 0.999
    # Both texts are equal to a model of lower-cased words.
    assert cosine(plain, loud) < 0.95


def test_a_vector_has_the_weekday_and_the_length() -> None:
    monday = style_vectors(dated_texts("the market", day="2004-08-02"), FITTED)[0]
    tuesday = style_vectors(dated_texts("the market", day="2004-08-03"), FITTED)[0]
    # A fifth of the fitted dates are Mondays: mean 0.2, deviation 0.4.
    assert monday[STYLE_DIMS : STYLE_DIMS + 2].tolist() == pytest.approx([2.0, -0.5])
    assert tuesday[STYLE_DIMS : STYLE_DIMS + 2].tolist() == pytest.approx([-0.5, 2.0])
    # No fitted text is from a Sunday, so that column is 0.
    assert float(monday[STYLE_DIMS + DAYS - 1]) == 0
    short, long = style_vectors(dated_texts("the", "the " * 30), FITTED)[:, -1].tolist()
    assert short < 0 < long


def test_a_vector_does_not_depend_on_the_texts_beside_it() -> None:
    alone = style_vectors(dated_texts("well... no!"), FITTED)[0]
    together = style_vectors(dated_texts("?? THE END ??", "well... no!", "", "a"), FITTED)
    assert torch.allclose(alone, together[1], atol=1e-4)
    assert bool(together.isfinite().all())


def test_fitted_texts_have_mean_0_and_deviation_1() -> None:
    vectors = style_vectors(FITTED, FITTED)
    deviation = vectors.std(0, correction=0)
    assert torch.allclose(vectors.mean(0), torch.zeros(1), atol=1e-4)
    # Only columns that vary: five directions of five texts, five weekdays, and the length.
    assert torch.allclose(deviation[deviation > 0.5], torch.ones(1), atol=1e-3)
    assert int((deviation > 0.5).sum()) >= 5 + 5 + 1
