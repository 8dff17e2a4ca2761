"""The words of tokens."""

import pytest

from overheard.core.known_facts.token_words import TokenWords, words_of_task
from overheard.core.task import Task


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
