"""Logits and accuracies of models."""

import pytest
import torch

from overheard.core.examples import Examples, without_classes
from overheard.core.messages import apply_update
from overheard.core.seeds import Seed
from overheard.learning import evaluate
from overheard.learning.evaluate import (
    logits_of_models,
    logits_of_updates,
    utility,
)
from overheard.learning.initialization import initial_weights
from tests.learning.cases import (
    CONVOLUTIONS,
    IMAGES,
    MLP,
    READING,
    TABLE,
    TEXTS,
    WORDS,
    pool_of,
)


@pytest.mark.parametrize(
    ("build", "task"),
    [(MLP, TABLE), (CONVOLUTIONS, IMAGES), (WORDS, TEXTS), (READING, TEXTS)],
)
def test_yields_the_logits_of_each_model_in_order(build, task):
    inputs = pool_of(task, torch.float32).inputs
    cohort = [initial_weights(build, Seed(n)) for n in range(20)]
    answers = list(logits_of_models(build, cohort, inputs, batch=7))
    assert len(answers) == 20
    for weights, answer in zip(cohort, answers, strict=True):
        model = build()
        model.load_state_dict(weights)
        torch.testing.assert_close(answer, model(inputs).detach())


def test_large_models_are_read_one_by_one(monkeypatch):
    monkeypatch.setattr(evaluate, "MAX_STACK_BYTES", 1)
    read = list[int]()

    def cohort():
        for number in range(3):
            read.append(number)
            yield initial_weights(MLP, Seed(number))

    inputs = pool_of(TABLE, torch.float32).inputs
    answers = logits_of_models(MLP, cohort(), inputs)
    first = next(answers)
    assert read == [0]
    alone = next(logits_of_models(MLP, [initial_weights(MLP, Seed(0))], inputs))
    assert torch.equal(first, alone)
    assert len(list(answers)) == 2


def constant_model() -> torch.nn.Module:
    """A model whose outputs are its biases alone."""
    return torch.nn.Sequential(torch.nn.Linear(1, 2))


def rows_of(numbers: list[list[float]]) -> Examples:
    return without_classes(torch.zeros(len(numbers), 1), torch.tensor(numbers))


def test_the_utility_of_several_labels_is_the_share_of_right_ones() -> None:
    weights = {"0.weight": torch.zeros(2, 1), "0.bias": torch.tensor([3.0, -3.0])}
    several = rows_of([[1.0, 0.0], [1.0, 1.0]])  # the model says (1, 0) of both
    assert utility(constant_model, weights, several, "multi_label") == 0.75


def test_the_utility_of_numbers_is_the_explained_variance_and_at_least_0() -> None:
    # The first number is 0 or 2, which its mean of 1 does not explain; the second is always 5.
    weights = {"0.weight": torch.zeros(2, 1), "0.bias": torch.tensor([1.0, 5.0])}
    assert (
        utility(constant_model, weights, rows_of([[0.0, 5.0], [2.0, 5.0]]), "regression") == 0
    )
    line = {"0.weight": torch.tensor([[2.0], [1.0]]), "0.bias": torch.tensor([0.0, 9.0])}
    exact = without_classes(
        torch.tensor([[0.0], [1.0]]), torch.tensor([[0.0, 0.0], [2.0, 1.0]])
    )
    # All of the first number is explained, and the second is 9 away from it.
    assert utility(constant_model, line, exact, "regression") == 0.5
    broken = {name: torch.full_like(one, torch.nan) for name, one in weights.items()}
    assert utility(constant_model, broken, exact, "regression") == 0


@pytest.mark.parametrize(("build", "task"), [(MLP, TABLE), (CONVOLUTIONS, IMAGES)])
def test_the_logits_after_updates_are_those_of_the_updated_models(build, task):
    inputs = pool_of(task, torch.float32).inputs
    start = initial_weights(build, Seed(0))
    # More than are stacked at once, and not a multiple of it.
    deltas = [initial_weights(build, Seed(n)) for n in range(1, 20)]
    local = (apply_update(start, delta) for delta in deltas)
    expected = list(logits_of_models(build, local, inputs, batch=7))
    for found, logits in zip(
        logits_of_updates(build, start, deltas, inputs, batch=7), expected, strict=True
    ):
        assert torch.equal(found, logits)


def test_updates_change_neither_the_broadcast_nor_each_other():
    inputs = pool_of(TABLE, torch.float32).inputs
    start, delta = initial_weights(MLP, Seed(0)), initial_weights(MLP, Seed(1))
    before = {name: one.clone() for name, one in (*start.items(), *delta.items())}
    first, second = logits_of_updates(MLP, start, [delta, delta], inputs)
    assert torch.equal(first, second)
    assert all(torch.equal(one, before[name]) for name, one in delta.items())


def test_the_broadcast_is_read_once():
    class Counted(dict):
        reads = 0

        def __getitem__(self, name):
            Counted.reads += 1
            return super().__getitem__(name)

    start, inputs = initial_weights(MLP, Seed(0)), pool_of(TABLE, torch.float32).inputs
    list(logits_of_updates(MLP, Counted(start), [start] * 40, inputs))
    # Run-time type checks read a few tensors, too.
    assert len(start) <= Counted.reads < 2 * len(start)
