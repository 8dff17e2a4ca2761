"""Valid and invalid tasks."""

import pytest

from overheard.core.task import Task, TokenWords, words_of_task


@pytest.mark.parametrize("names", [(), ("only",)])
def test_refuses_fewer_than_two_classes(names: tuple[str, ...]):
    with pytest.raises(ValueError, match="2 classes or more"):
        Task((2,), names)


@pytest.mark.parametrize("shape", [(), (0,), (3, -1)])
def test_refuses_a_shape_without_numbers(shape: tuple[int, ...]):
    with pytest.raises(ValueError, match="1 or more"):
        Task(shape, ("a", "b"))


def test_refuses_more_outputs_than_any_model_has():
    with pytest.raises(ValueError, match="at most 262144 outputs, got 262145"):
        Task((2,), ("a",) * (2**18 + 1))


@pytest.mark.parametrize(
    ("shape", "message"),
    [((1,) * 9, "at most 8 axes, got 9"), ((2**31, 2), "at most 2147483648 numbers")],
)
def test_refuses_a_shape_that_no_input_has(shape: tuple[int, ...], message: str):
    with pytest.raises(ValueError, match=message):
        Task(shape, ("a", "b"))


@pytest.mark.parametrize(
    ("tokens", "first", "words", "message"),
    [
        (2, 2, (), "the first word must be one of 2 tokens, got 2"),
        (2, -1, (), "got -1"),
        (4, 2, ("and",), "1 words for 2 tokens"),
    ],
)
def test_refuses_words_that_do_not_fit_the_tokens(tokens, first, words, message):
    with pytest.raises(ValueError, match=message):
        TokenWords(tokens, first, words)


def test_a_task_says_how_many_tokens_there_are_and_whether_labels_are_tokens():
    assert words_of_task(Task((3,), ("a", "b"))) is None
    assert words_of_task(Task((3,), ("a", "b"), vocabulary=9)) == TokenWords(9, 1)
    every = Task((3,), tuple("abcdefghi"), vocabulary=9)
    assert words_of_task(every) == TokenWords(9, 1, first_label=0)


@pytest.mark.parametrize("kind", ["multi_label", "regression"])
def test_refuses_a_task_without_outputs(kind: str):
    with pytest.raises(ValueError, match="a name for each output"):
        Task((2,), (), kind=kind)
