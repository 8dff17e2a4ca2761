"""Facts that are known beforehand."""

from typing import Any

import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.known_facts.token_words import TokenWords, words_of_task
from overheard.core.parties import shadow_device
from overheard.core.task import Task

SOME = Examples(torch.zeros(2, 1), torch.tensor([0, 1]))


def test_refuses_a_user_who_is_both_candidate_and_holdout() -> None:
    with pytest.raises(ValueError, match=r"both priors and holdout: \['ann'\]"):
        KnownUsers({"ann": SOME, "bob": SOME}, {"ann": SOME})


@pytest.mark.parametrize(
    "given",
    [
        {"shadow_devices": {shadow_device(0): "eva"}},
        {"embeddings": {"eva": torch.zeros(3)}},
        {"attributes": {"hand": {"ann": "left", "eva": "right"}}},
    ],
    ids=["device", "embedding", "attribute"],
)
def test_refuses_knowledge_of_a_user_without_prior_examples(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"users without prior examples: \['eva'\]"):
        KnownUsers({"ann": SOME}, {"bob": SOME}, **given)
    KnownUsers({"ann": SOME}, {"eva": SOME}, **given)


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
