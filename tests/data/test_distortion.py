"""Distortion changes inputs and keeps labels."""

import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.distortion import distort

SEED = Seed(3)
GENERATOR = torch.Generator().manual_seed(0)
IMAGES = Examples(torch.randn(40, 1, 6, 6, generator=GENERATOR), torch.arange(40) % 4)
NUMBERS = Examples(torch.randn(400, 3, generator=GENERATOR), torch.arange(400) % 4)
TEXTS = Examples(
    torch.cat([torch.randint(1, 50, (40, 20)), torch.zeros(40, 5, dtype=torch.long)], 1),
    torch.arange(40) % 4,
)
NAMES = ("a", "b", "c", "d")
CASES = (
    (IMAGES, Task((1, 6, 6), NAMES)),
    (NUMBERS, Task((3,), NAMES)),
    (TEXTS, Task((25,), NAMES, vocabulary=50)),
)


@pytest.mark.parametrize(("examples", "task"), CASES, ids=["images", "numbers", "texts"])
def test_inputs_change_more_at_higher_strength_and_labels_never(examples: Examples, task: Task):
    weak, strong = (distort(examples, task, strength, SEED) for strength in (0.2, 1.0))
    for changed in (weak, strong):
        assert torch.equal(changed.labels, examples.labels)
        assert changed.inputs.dtype == examples.inputs.dtype
        assert changed.inputs.shape == examples.inputs.shape
    differences = [
        (one.inputs - examples.inputs).float().abs().mean() for one in (weak, strong)
    ]
    assert 0 < differences[0] < differences[1]


@pytest.mark.parametrize(("examples", "task"), CASES, ids=["images", "numbers", "texts"])
def test_strength_0_changes_nothing_and_noise_depends_on_the_seed(
    examples: Examples, task: Task
):
    assert torch.allclose(distort(examples, task, 0.0, SEED).inputs, examples.inputs)
    one, same, other = (distort(examples, task, 0.5, Seed(n)).inputs for n in (3, 3, 4))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_a_constant_image_is_not_changed():
    # There is no edge to blur, no contrast to lose, and the noise scales with the spread.
    flat = Examples(torch.full((2, 1, 4, 4), 0.7), torch.tensor([0, 1]))
    changed = distort(flat, Task((1, 4, 4), NAMES), 1.0, SEED).inputs
    assert torch.allclose(changed, flat.inputs, atol=1e-6)


def test_words_are_replaced_by_words_and_padding_is_kept():
    changed = distort(TEXTS, CASES[2][1], 1.0, SEED).inputs
    words = TEXTS.inputs >= 2
    assert torch.equal(changed[~words], TEXTS.inputs[~words])
    assert int(changed[words].min()) >= 2
    assert int(changed.max()) < 50


@pytest.mark.parametrize("strength", [-0.1, 1.1, float("nan")])
def test_refuses_a_strength_out_of_range(strength: float):
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        distort(IMAGES, CASES[0][1], strength, SEED)
