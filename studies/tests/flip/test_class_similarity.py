import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard_studies.flip.pictures import (
    class_margin,
    is_nearest_to_its_class,
    measure_class_similarity,
)

# The means are (4, 0) of two images and (0, 2) of one; their mean is (2, 1).
HELD = Examples(torch.tensor([[3.0, 0.0], [5.0, 0.0], [0.0, 2.0]]), torch.tensor([0, 0, 1]))


def test_similarity_is_the_cosine_after_subtracting_the_overall_mean() -> None:
    # Relative to the overall mean: class means (2, -1) and (-2, 1), and (3, 1) is (1, 0).
    similarities = measure_class_similarity(torch.tensor([[3.0, 1.0], [2.0, 1.0]]), HELD, 2)
    assert similarities[0].tolist() == pytest.approx([2 / 5**0.5, -2 / 5**0.5])
    assert similarities[1].tolist() == [0.0, 0.0]


def test_an_example_is_nearest_to_the_class_with_the_largest_similarity() -> None:
    similarities = torch.tensor([[0.2, 0.5, 0.1], [0.2, 0.5, 0.1]])
    labels = torch.tensor([1, 0])
    assert is_nearest_to_its_class(similarities, labels).tolist() == [True, False]
    # The other classes have 0.15 and 0.3 on average.
    assert class_margin(similarities, labels).tolist() == pytest.approx([0.35, -0.1])


def test_noise_is_similar_to_no_class_and_copies_are_to_their_own() -> None:
    classes, each = 4, 300
    centres = torch.randn(classes, 20, generator=Seed(0).generator())
    labels = torch.arange(classes * each) % classes
    noise = torch.randn(classes * each, 20, generator=Seed(1).generator())
    held = Examples(centres[labels] + 0.1 * noise, labels)
    copies = is_nearest_to_its_class(
        measure_class_similarity(held.inputs, held, classes), labels
    )
    assert bool(copies.all())
    similarities = measure_class_similarity(noise, held, classes)
    # 1,200 guesses at 1/4: 0.25, plus or minus 4 deviations of 0.0125.
    assert float(
        is_nearest_to_its_class(similarities, labels).double().mean()
    ) == pytest.approx(0.25, abs=0.05)
    assert float(class_margin(similarities, labels).mean()) == pytest.approx(0.0, abs=0.05)
