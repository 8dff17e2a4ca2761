import torch

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.simulation.auxiliary_split import split_auxiliary
from overheard.simulation.cached_readings import MIN_PER_CLASS, build_pool


def test_each_half_is_augmented_from_its_own_examples() -> None:
    # Rows of the two halves have opposite values, so that mixing them would be visible.
    labels = torch.arange(30) % 3
    split = split_auxiliary(labels, 3, Seed(0))
    inputs = torch.zeros(30, 1)
    inputs[split.halves[0]] = 100.0
    inputs[split.halves[1]] = -100.0
    result = build_pool(Examples(inputs, labels), split, Seed(1))
    for half, value in zip(result.halves, (100.0, -100.0), strict=True):
        half_examples = result.examples.take(half)
        assert half_examples.label_counts(3).tolist() == [MIN_PER_CLASS] * 3
        assert torch.allclose(half_examples.inputs, torch.tensor(value))


def test_enough_examples_are_not_augmented() -> None:
    labels = torch.arange(900) % 3
    split = split_auxiliary(labels, 3, Seed(0))
    examples = Examples(torch.arange(900.0).unsqueeze(1), labels)
    result = build_pool(examples, split, Seed(1))
    rows_used = [result.examples.inputs[half].flatten().long() for half in result.halves]
    assert all(map(torch.equal, rows_used, split.halves))
