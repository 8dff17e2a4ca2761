import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import DataError
from overheard.data.datasets.blogs import WindowSettings, cut_windows
from overheard.data.reading.texts import RESERVED_TOKENS, UNKNOWN


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
