import pandas as pd
import pytest
import torch

from overheard.data.reading.style import DAYS, STYLE_DIMS, DatedTexts, style_vectors


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
