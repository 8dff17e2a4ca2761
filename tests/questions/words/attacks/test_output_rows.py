"""Words from the rows of the last layer that an update raises."""

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.parties import client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.questions.words.attacks.rows import OutputRows
from tests.questions.words.small_texts import (
    SHARED_KNOWLEDGE,
    WORDS,
    SharedTable,
    build,
    knowledge,
    view_of_training,
    view_of_update,
    with_frozen,
)

RECIPE = Recipe(rate=0.5, epochs=2, batch=1)


def infer(view, known):
    return OutputRows().infer(view, [client(0)], known, Seed(0))[client(0)]


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
# With adapters word vectors are frozen.
@pytest.mark.parametrize("builder", [build, with_frozen(0)])
def test_label_is_named_first_also_if_word_vectors_are_frozen(builder, optimizer):
    recipe = Recipe(rate=0.05, epochs=2, batch=1, optimizer=optimizer)
    claim = infer(view_of_training(builder, recipe), knowledge(builder))
    assert claim.names[int(claim.scores.argmax())] == "dough"


def test_bias_alone_tells_a_label_from_words_that_are_none():
    # Without a change of the rows only the biases count: median -1, and one deviates by 7.
    delta = {"1.weight": torch.zeros(6, 3), "1.bias": torch.full((6,), -1.0)}
    delta["1.bias"][3] = 6.0
    claim = infer(view_of_update(delta, delta), knowledge())
    assert claim.scores.tolist() == pytest.approx([0, 0, 0, 1e6, 0, 0])
    assert claim.names[int(claim.scores.argmax())] == "dough"


def test_words_that_are_no_label_have_the_lowest_score():
    # Label 0 is token 4, "crumb"; "and" and "bread" are before it.
    words = TokenWords(10, 2, (*WORDS.words, "go", "hay"), first_label=4)
    delta = {"1.weight": torch.zeros(6, 3), "1.bias": torch.arange(6.0)}
    claim = infer(view_of_update(delta, delta), knowledge(words=words))
    assert claim.scores[0] == claim.scores[1] == claim.scores.min()
    assert claim.scores[2:].tolist() == sorted(claim.scores[2:].tolist())


def test_labels_that_are_no_words_are_refused():
    words = TokenWords(8, 2, WORDS.words)
    with pytest.raises(NeedsError, match="the labels of this task are no words"):
        infer(view_of_training(build, RECIPE), knowledge(words=words))


def test_last_layer_that_is_frozen_is_refused():
    adapters_alone = with_frozen(1)
    with pytest.raises(
        NeedsError, match=r"1\.weight, the last nn\.Linear of Sequential, is frozen"
    ):
        infer(view_of_training(adapters_alone, RECIPE), knowledge(adapters_alone))


def test_last_layer_that_is_also_the_table_of_words_is_read():
    # The label is token 3, the word after that of token 2.
    claim = infer(view_of_training(SharedTable, RECIPE), SHARED_KNOWLEDGE)
    assert int(claim.scores.argmax()) == 1
