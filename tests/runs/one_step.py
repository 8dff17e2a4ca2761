"""A client with one full-batch step from zero weights, where gradient formulas are exact.

Three classes; an example of class k is the k-th unit vector, so its features sum to 1. With
zero weights p = 1/3, and with n_k of K examples in class k
    db_c = 1/3 - n_c / K        and        dW_ck = n_k / K * (1/3 - [c = k]).
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientTask

RECIPE = Recipe(rate=0.5, epochs=1, batch=1000)
ZERO_WEIGHTS = {"0.weight": torch.zeros(3, 3), "0.bias": torch.zeros(3)}


def build() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 3))


def build_without_bias() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 3, bias=False))


def unit_examples(counts: Sequence[int]) -> Examples:
    labels = torch.repeat_interleave(torch.arange(3), torch.tensor(counts))
    return Examples(torch.eye(3)[labels], labels)


KNOWLEDGE = Knowledge(3, build, unit_examples((4, 4, 4)), RECIPE)


def biased_model(*answer: float) -> dict[str, Tensor]:
    """Make a model with these class probabilities for every example."""
    return {"0.weight": torch.zeros(3, 3), "0.bias": torch.tensor(answer).log()}


def train_step(
    counts: Sequence[int], start: dict[str, Tensor] = ZERO_WEIGHTS, recipe: Recipe = RECIPE
) -> dict[str, Tensor]:
    """Return the update of a client with these counts, in one step by default."""
    pool = unit_examples(counts)
    members = [ClientTask("client/0", torch.arange(len(pool)))]
    (trained,) = train_cohort(build, start, pool, members, recipe, seed=Seed(0), round=0)
    return dict(trained.delta)


def make_view(
    delta: dict[str, Tensor], examples: int | None, start: dict[str, Tensor] = ZERO_WEIGHTS
) -> View:
    """Make a view of one round with one client's update."""
    return View(
        frozenset({SERVER}),
        (
            Message(0, SERVER, frozenset({client(0)}), Broadcast(start)),
            Message(0, client(0), frozenset({SERVER}), Update(delta, examples)),
        ),
    )


def infer_shares(attack, view: View, knowledge: Knowledge = KNOWLEDGE) -> list[float]:
    return attack.infer(view, [client(0)], knowledge, Seed(0))[client(0)].shares.tolist()


def constant_update(value: float) -> dict[str, Tensor]:
    """Make an update with this value everywhere."""
    return {name: torch.full_like(weight, value) for name, weight in ZERO_WEIGHTS.items()}
