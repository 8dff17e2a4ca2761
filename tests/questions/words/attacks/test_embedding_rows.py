"""Words from the rows of word vectors that an update changes."""

import pytest
import torch
from torch import nn

from overheard.core.errors import NeedsError
from overheard.core.parties import client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.words.attacks.rows import EmbeddingRows
from overheard.questions.words.claim import Words
from tests.questions.words.small_texts import (
    SHARED_KNOWLEDGE,
    SharedTable,
    build,
    knowledge,
    view_of_training,
    view_of_update,
    with_frozen,
)

USED = {"and", "crumb"}

RECIPES = {
    "sgd": Recipe(rate=0.5, epochs=2, batch=1),
    "momentum": Recipe(rate=0.5, epochs=2, batch=1, momentum=0.9),
    "adam": Recipe(rate=0.01, epochs=2, batch=1, optimizer="adam"),
    "adadelta": Recipe(rate=1.0, epochs=2, batch=1, optimizer="adadelta"),
}


def claim_of(view: View, builder=build) -> Words:
    return EmbeddingRows().infer(view, [client(0)], knowledge(builder), Seed(0))[client(0)]


def named(claim: Words) -> set[str]:
    above = claim.scores > 0
    return {
        name for name, is_above in zip(claim.names, above.tolist(), strict=True) if is_above
    }


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_names_exactly_the_words_of_the_text_whatever_the_optimizer(recipe: Recipe):
    assert named(claim_of(view_of_training(build, recipe))) == USED


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
def test_ranks_used_words_first_although_weight_decay_moves_all_rows(optimizer):
    def larger() -> nn.Module:
        return nn.Sequential(nn.EmbeddingBag(8, 40, padding_idx=0), nn.Linear(40, 6))

    recipe = Recipe(rate=0.05, epochs=2, batch=1, optimizer=optimizer, weight_decay=0.01)
    claim = claim_of(view_of_training(larger, recipe), larger)
    assert {claim.names[place] for place in claim.scores.topk(2).indices.tolist()} == USED


def test_lengths_of_rows_are_compared_with_the_median_row():
    # Rows 2 to 7 have lengths 0, 5, 0, 0, 10, 0: median 0, deviations 0 but for two. The
    # spread is at least a millionth of the largest deviation, so the scores are 10 and 5
    # divided by 1e-5.
    delta = {"0.weight": torch.zeros(8, 3), "1.weight": torch.zeros(6, 3)}
    delta["0.weight"][3] = torch.tensor([3.0, 4.0, 0.0])
    delta["0.weight"][6] = torch.tensor([0.0, 0.0, 10.0])
    claim = claim_of(view_of_update({name: torch.ones(8, 3) for name in delta}, delta))
    assert claim.scores.tolist() == pytest.approx([0, 5e5, 0, 0, 1e6, 0])
    assert claim.candidates()[:2] == ("eat", "bread")


def test_frozen_word_vectors_are_refused_with_the_reason():
    frozen = with_frozen(0)
    with pytest.raises(NeedsError, match=r"0\.weight of Sequential is frozen and never sent"):
        claim_of(view_of_training(frozen, RECIPES["sgd"]), frozen)


def test_model_without_word_vectors_is_refused_with_the_reason():
    with pytest.raises(NeedsError, match=r"Linear has no nn\.Embedding"):
        claim_of(view_of_training(build, RECIPES["sgd"]), lambda: nn.Linear(3, 6))


def test_table_of_an_unknown_model_is_found_by_its_shape():
    assert named(claim_of(view_of_training(build, RECIPES["sgd"]), None)) == USED


def test_unknown_model_without_such_a_tensor_is_refused():
    delta = {"weight": torch.ones(6, 3)}
    with pytest.raises(NeedsError, match="no tensor that is sent has a row for each of 8"):
        claim_of(view_of_update(delta, delta), None)


def test_table_that_is_also_the_last_layer_is_read_and_positions_are_not():
    # All rows move along the push of absent labels, which is left out. Tokens 2 and 4 are used.
    view = view_of_training(SharedTable, Recipe(rate=0.5, epochs=1, batch=2))
    claim = EmbeddingRows().infer(view, [client(0)], SHARED_KNOWLEDGE, Seed(0))[client(0)]
    assert set(claim.scores.topk(2).indices.tolist()) == {0, 2}
