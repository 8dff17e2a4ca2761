import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.papers.flip.likeness import lead, likeness, looks_like_its_class

# Means (4, 0) of two images and (0, 2) of one; the mean of these (2, 1).
HELD = Examples(torch.tensor([[3.0, 0.0], [5.0, 0.0], [0.0, 2.0]]), torch.tensor([0, 0, 1]))


def test_likeness_is_the_cosine_after_the_mean_of_all_is_taken_off() -> None:
    # Off the middle the means are (2, -1) and (-2, 1); (3, 1) is (1, 0), and 2 / sqrt(5).
    told = likeness(torch.tensor([[3.0, 1.0], [2.0, 1.0]]), HELD, 2)
    assert told[0].tolist() == pytest.approx([2 / 5**0.5, -2 / 5**0.5])
    assert told[1].tolist() == [0.0, 0.0]


def test_an_example_looks_like_the_class_it_is_most_like() -> None:
    told = torch.tensor([[0.2, 0.5, 0.1], [0.2, 0.5, 0.1]])
    labels = torch.tensor([1, 0])
    assert looks_like_its_class(told, labels).tolist() == [True, False]
    # Others have 0.15 on average, and 0.3.
    assert lead(told, labels).tolist() == pytest.approx([0.35, -0.1])


def test_noise_looks_like_no_class_and_copies_like_theirs() -> None:
    classes, each = 4, 300
    centres = torch.randn(classes, 20, generator=Seed(0).generator())
    labels = torch.arange(classes * each) % classes
    noise = torch.randn(classes * each, 20, generator=Seed(1).generator())
    held = Examples(centres[labels] + 0.1 * noise, labels)
    copies = looks_like_its_class(likeness(held.inputs, held, classes), labels)
    assert bool(copies.all())
    told = likeness(noise, held, classes)
    # 1,200 guesses at 1/4: 0.25, give or take 4 deviations of 0.0125.
    assert float(looks_like_its_class(told, labels).double().mean()) == pytest.approx(
        0.25, abs=0.05
    )
    assert float(lead(told, labels).mean()) == pytest.approx(0.0, abs=0.05)
