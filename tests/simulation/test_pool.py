import torch

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.simulation import pool
from overheard.simulation.parting import part
from overheard.simulation.pool import pool_of


def test_each_half_is_filled_up_from_its_own_examples_alone() -> None:
    # The first column tells which example this is, the second is 0: mixing keeps halves apart
    # if each row is far from those of the other half.
    labels = torch.arange(30) % 3
    parting = part(labels, 3, Seed(0))
    inputs = torch.zeros(30, 1)
    inputs[parting.halves[0]] = 100.0
    inputs[parting.halves[1]] = -100.0
    made = pool_of(Examples(inputs, labels), parting, Seed(1))
    for half, value in zip(made.halves, (100.0, -100.0), strict=True):
        mine = made.examples.take(half)
        assert mine.counts(3).tolist() == [pool.ENOUGH] * 3
        assert torch.allclose(mine.inputs, torch.tensor(value))


def test_ample_examples_are_taken_as_they_are() -> None:
    labels = torch.arange(900) % 3
    parting = part(labels, 3, Seed(0))
    examples = Examples(torch.arange(900.0).unsqueeze(1), labels)
    made = pool_of(examples, parting, Seed(1))
    taken = [made.examples.inputs[half].flatten().long() for half in made.halves]
    assert all(map(torch.equal, taken, parting.halves))
