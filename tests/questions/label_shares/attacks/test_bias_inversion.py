"""The bias equation with known solutions."""

import pytest
import torch

from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Update
from overheard.core.parties import SERVER, client
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion, _solve_shares

SHARES = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
ALONG = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]], dtype=torch.float64)
START = torch.tensor([0.4, -0.2, 0.1], dtype=torch.float64)


def drift(kappa: float) -> torch.Tensor:
    """Return kappa (I - P^T) pi."""
    return kappa * (SHARES - ALONG.T @ SHARES)


def solved(change: torch.Tensor, recipe: Recipe, examples: int | None) -> list[float]:
    updates, matrices = [Update({"b": change}, examples)], ALONG[None]
    return _solve_shares(START, updates, "b", matrices, recipe)[0].tolist()


def test_clients_of_a_round_get_the_shares_of_each_alone():
    # With a known size, with a hidden one, and with a model that diverged: even shares.
    recipe = Recipe(rate=0.05, epochs=2, batch=10)
    changes = [drift(1.0), drift(2.0), torch.full((3,), torch.nan, dtype=torch.float64)]
    sizes = [100, None, 100]
    updates = [Update({"b": one}, size) for one, size in zip(changes, sizes, strict=True)]
    together = _solve_shares(START, updates, "b", ALONG.expand(3, 3, 3), recipe).tolist()
    assert together[:2] == [solved(changes[0], recipe, 100), solved(changes[1], recipe, None)]
    assert together[2] == pytest.approx([1 / 3] * 3)


def test_recovers_the_shares_with_known_steps():
    # 100 examples in batches of 10, 2 epochs: 20 steps of 0.05: kappa = 1.
    recipe = Recipe(rate=0.05, epochs=2, batch=10)
    assert solved(drift(1.0), recipe, 100) == pytest.approx(SHARES.tolist(), abs=1e-4)


def test_corrects_for_momentum():
    # 1 / (1 - 0.5) = 2: the same steps have twice the effect.
    recipe = Recipe(rate=0.05, epochs=2, batch=10, momentum=0.5)
    assert solved(drift(2.0), recipe, 100) == pytest.approx(SHARES.tolist(), abs=1e-4)


def test_corrects_for_weight_decay():
    # Decay pulls by rate * decay * steps * mean bias = 0.05 * 0.1 * 20 * (b + db / 2). With
    # db = drift - 0.1 (b + db / 2):  db (1 + 0.05) = drift - 0.1 b.
    recipe = Recipe(rate=0.05, epochs=2, batch=10, weight_decay=0.1)
    change = (drift(1.0) - 0.1 * START) / 1.05
    assert solved(change, recipe, 100) == pytest.approx(SHARES.tolist(), abs=1e-4)


def test_a_hidden_size_gives_shares_that_explain_the_direction():
    recipe = Recipe(rate=0.05, epochs=2, batch=10)
    shares = torch.tensor(solved(drift(1.0), recipe, None), dtype=torch.float64)
    moved = shares - ALONG.T @ shares
    cosine = torch.nn.functional.cosine_similarity(moved, drift(1.0), dim=0)
    # Identified up to mixing with the stationary shares of P, so up to a positive factor.
    assert float(cosine) == pytest.approx(1, abs=1e-6)


def test_refuses_a_model_without_output_bias(leaky):
    def bare() -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Linear(12, 4, bias=False))

    known = leaky.knowledge
    knowledge = Knowledge(known.classes, bare, known.auxiliary, known.recipe)
    with pytest.raises(NeedsError, match="bias"):
        BiasInversion().infer(leaky.transcript.seen_by(SERVER), [client(0)], knowledge, Seed(0))


def test_corrects_for_label_smoothing():
    # Smoothed by 0.3, targets are 0.7 pi + 0.1; 10 examples in one step: kappa = 1.
    change = 0.7 * SHARES + 0.1 - ALONG.T @ SHARES
    recipe = Recipe(rate=1.0, epochs=1, batch=10, label_smoothing=0.3)
    assert solved(change, recipe, 10) == pytest.approx(SHARES.tolist(), abs=1e-3)
    plain = Recipe(rate=1.0, epochs=1, batch=10)
    assert solved(change, plain, 10) != pytest.approx(SHARES.tolist(), abs=5e-2)


def test_an_update_that_is_not_finite_gives_even_shares():
    change = torch.tensor([float("nan"), 0.1, 0.2], dtype=torch.float64)
    assert solved(change, Recipe(1.0, 1, 1), 1) == pytest.approx([1 / 3] * 3)
