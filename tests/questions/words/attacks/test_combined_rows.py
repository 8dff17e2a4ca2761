"""Words from word vectors, the last layer and public text together."""

import pytest
import torch
from torch import nn

from overheard.core.errors import NeedsError
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.questions.words.attacks.rows import CombinedRows, EmbeddingRows, OutputRows
from overheard.questions.words.checks import OWN_WORDS, simulate_words
from tests.questions.words.small_texts import build, knowledge, view_of_training, with_frozen

RECIPE = Recipe(rate=0.5, epochs=2, batch=1)


def test_used_words_are_more_probable_than_all_others():
    run = simulate_words(is_leaking=True)
    claims = CombinedRows().infer(
        run.transcript.seen_by(SERVER), run.targets, run.knowledge, Seed(0)
    )
    for number, target in enumerate(run.targets):
        own = slice(number * OWN_WORDS, (number + 1) * OWN_WORDS)
        others = claims[target].scores.clone()
        others[own] = -torch.inf
        assert claims[target].scores[own].min() > others.max()


@pytest.mark.parametrize("part", [0, 1])
def test_uses_the_part_that_is_sent_if_the_other_is_not(part):
    partly_frozen = with_frozen(1 - part)
    view = view_of_training(partly_frozen, RECIPE)
    claim, alone = (
        attack.infer(view, [client(0)], knowledge(partly_frozen), Seed(0))[client(0)]
        for attack in (CombinedRows(), (EmbeddingRows(), OutputRows())[part])
    )
    assert claim.scores.argmax() in alone.scores.topk(2).indices


def test_refuses_with_both_reasons_if_neither_is_sent():
    def adapters_alone() -> nn.Module:
        model = nn.Sequential(build()[0], nn.Linear(3, 3), nn.Linear(3, 6))
        model[0].requires_grad_(False)
        model[2].requires_grad_(False)
        return model

    view = view_of_training(adapters_alone, RECIPE)
    with pytest.raises(NeedsError, match=r"word vectors.*0\.weight.*last layer.*2\.weight"):
        CombinedRows().infer(view, [client(0)], knowledge(adapters_alone), Seed(0))


def test_adds_up_the_evidence_if_no_text_is_public():
    claim = CombinedRows().infer(
        view_of_training(build, RECIPE), [client(0)], knowledge(), Seed(0)
    )[client(0)]
    first = {claim.names[place] for place in claim.scores.topk(3).indices.tolist()}
    assert first == {"and", "crumb", "dough"}
