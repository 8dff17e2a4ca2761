"""A vocabulary of six words, and updates of small models whose rows are worked by hand."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.view import View
from overheard.learning.initialization import initial_weights
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask

WORDS = TokenWords(8, 2, ("and", "bread", "crumb", "dough", "eat", "flour"), first_label=2)
"""Token 0 is padding and 1 an unknown word; label i is the word of token i + 2."""

TEXTS = Examples(torch.tensor([[2, 4, 0], [4, 1, 0]]), torch.tensor([3, 3]))
"""Two texts of "and" and "crumb", in both of which "dough" is next."""


def build() -> nn.Module:
    return nn.Sequential(nn.EmbeddingBag(8, 3, padding_idx=0), nn.Linear(3, 6))


def with_frozen(layer: int) -> Callable[[], nn.Module]:
    """Return the builder of a model in which this layer is frozen and so never sent."""

    def frozen() -> nn.Module:
        model = build()
        model[layer].requires_grad_(False)
        return model

    return frozen


class SharedTable(nn.Module):
    """A model whose word vectors are also its last layer, with outputs for 60 tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Embedding(3, 16)
        self.table = nn.Embedding(60, 16, padding_idx=0)
        self.last = nn.Linear(16, 60, bias=False)
        self.last.weight = self.table.weight

    def forward(self, tokens: Tensor) -> Tensor:
        states = self.table(tokens) + self.positions(torch.arange(tokens.shape[1]))
        outputs: Tensor = self.last(states.mean(1))
        return outputs


SHARED_KNOWLEDGE = Knowledge(60, SharedTable, facts=Facts(TokenWords(60, 2, first_label=0)))


def knowledge(
    builder: Callable[[], nn.Module] | None = build, words: TokenWords = WORDS
) -> Knowledge:
    return Knowledge(6, builder, facts=Facts(words))


def view_of_training(builder: Callable[[], nn.Module], recipe: Recipe) -> View:
    """What the server sees of a client that trains on `TEXTS` for a round."""
    start = dict(initial_weights(builder, Seed(0)))
    task = ClientTask(client(0), torch.arange(2))
    (trained,) = train_cohort(
        builder, start, TEXTS, [task], recipe, seed=Seed(1), round=0, workers=1
    )
    return view_of_update(start, dict(trained.delta))


def view_of_update(start: Mapping[str, Tensor], delta: Mapping[str, Tensor]) -> View:
    """What the server sees of a client that sends this update."""
    messages = (
        Message(0, SERVER, frozenset({client(0)}), Broadcast(start)),
        Message(0, client(0), frozenset({SERVER}), Update(delta, 2)),
    )
    return Transcript(messages).seen_by(SERVER)
