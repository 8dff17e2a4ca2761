"""A federation whose numbers can be computed by hand.

The model has one weight a class, both 0 at the start, so it gives each class the probability
1/2. Client 0 holds one example x = 2 of class 0, client 1 three examples x = 4 of class 1; each
takes one step at rate 1. The gradient is the mean of (probability - truth) * x:

    client 0: (-1/2, 1/2) * 2 = (-1, 1), so its update is (1, -1)
    client 1: (1/2, -1/2) * 4 = (2, -2), so its update is (-2, 2)
    their mean by size: (1 * (1, -1) + 3 * (-2, 2)) / 4 = (-1.25, 1.25)
"""

from pathlib import Path

import pytest
import torch
from torch import nn

from overheard.core.defense import Defense
from overheard.core.examples import Examples
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.federation.federation import Federation


class ClientDefense(Defense):
    """What defenses of tests have in common."""

    name = "of a test"
    source = "this test"
    enforced_at = "client"
    switched_off_by = "the client"


def build_model() -> nn.Module:
    model = nn.Linear(1, 2, bias=False)
    nn.init.zeros_(model.weight)
    return model


def federation(pool: Examples, rows: list[list[torch.Tensor]], recipe: Recipe) -> Federation:
    return Federation(
        build_model=build_model,
        model="two weights",
        task=Task((1,), ("no", "yes")),
        recipe=recipe,
        pool=pool,
        rows=rows,
        test=pool,
        rounds=len(rows),
        seed=Seed(5),
        engine="sequential",
    )


@pytest.fixture
def small() -> Federation:
    pool = Examples(torch.tensor([[2.0], [4.0], [4.0], [4.0]]), torch.tensor([0, 1, 1, 1]))
    rows = [torch.tensor([0]), torch.tensor([1, 2, 3])]
    return federation(pool, [rows] * 2, Recipe(rate=1.0, epochs=1, batch=8))


@pytest.fixture
def crowd() -> Federation:
    """Twenty clients of ten examples each; three rounds."""
    generator = torch.Generator().manual_seed(0)
    pool = Examples(
        torch.randn(200, 1, generator=generator),
        torch.randint(0, 2, (200,), generator=generator),
    )
    rows = list(torch.arange(200).split(10))
    return federation(pool, [rows] * 3, Recipe(rate=0.1, epochs=1, batch=4))


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
