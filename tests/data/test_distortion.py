"""What another instrument makes of examples: other inputs, the same labels."""

import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.distortion import distorted

SEED = Seed(3)
GENERATOR = torch.Generator().manual_seed(0)
IMAGES = Examples(torch.randn(40, 1, 6, 6, generator=GENERATOR), torch.arange(40) % 4)
NUMBERS = Examples(torch.randn(400, 3, generator=GENERATOR), torch.arange(400) % 4)
TEXTS = Examples(
    torch.cat([torch.randint(1, 50, (40, 20)), torch.zeros(40, 5, dtype=torch.long)], 1),
    torch.arange(40) % 4,
)
NAMES = ("a", "b", "c", "d")
KINDS = (
    (IMAGES, Task((1, 6, 6), NAMES)),
    (NUMBERS, Task((3,), NAMES)),
    (TEXTS, Task((25,), NAMES, vocabulary=50)),
)


@pytest.mark.parametrize(("examples", "task"), KINDS, ids=["images", "numbers", "texts"])
def test_inputs_change_by_the_strength_and_labels_never(examples: Examples, task: Task):
    weak, strong = (distorted(examples, task, strength, SEED) for strength in (0.2, 1.0))
    for changed in (weak, strong):
        assert torch.equal(changed.labels, examples.labels)
        assert changed.inputs.dtype == examples.inputs.dtype
        assert changed.inputs.shape == examples.inputs.shape
    gaps = [(one.inputs - examples.inputs).float().abs().mean() for one in (weak, strong)]
    assert 0 < gaps[0] < gaps[1]


@pytest.mark.parametrize(("examples", "task"), KINDS, ids=["images", "numbers", "texts"])
def test_strength_0_changes_nothing_and_one_seed_draws_one_noise(
    examples: Examples, task: Task
):
    assert torch.allclose(distorted(examples, task, 0.0, SEED).inputs, examples.inputs)
    one, same, other = (distorted(examples, task, 0.5, Seed(n)).inputs for n in (3, 3, 4))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_an_image_that_is_all_alike_keeps_its_level_but_for_noise():
    # No edge to blur and no contrast to lose; without spread the noise has no scale either.
    flat = Examples(torch.full((2, 1, 4, 4), 0.7), torch.tensor([0, 1]))
    changed = distorted(flat, Task((1, 4, 4), NAMES), 1.0, SEED).inputs
    assert torch.allclose(changed, flat.inputs, atol=1e-6)


def test_every_column_is_scaled_by_a_factor_of_its_own():
    changed = distorted(NUMBERS, KINDS[1][1], 1.0, SEED).inputs
    slopes = (changed * NUMBERS.inputs).sum(0) / NUMBERS.inputs.square().sum(0)
    assert float(slopes.std()) > 0.1


def test_words_are_replaced_by_words_and_the_length_of_a_text_stays():
    changed = distorted(TEXTS, KINDS[2][1], 1.0, SEED).inputs
    words = TEXTS.inputs >= 2
    assert torch.equal(changed[~words], TEXTS.inputs[~words])
    assert int(changed[words].min()) >= 2
    assert int(changed.max()) < 50


@pytest.mark.parametrize("strength", [-0.1, 1.1, float("nan")])
def test_refuses_a_strength_that_is_none(strength: float):
    with pytest.raises(ValueError, match="lies between 0 and 1"):
        distorted(IMAGES, KINDS[0][1], strength, SEED)
