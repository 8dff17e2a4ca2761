"""Letters are drawn as they look, and the same each time."""

import numpy as np
from matplotlib.path import Path as Outline

from overheard_studies.measurements.letters import SIDE, Letters, _coverage


def square(side: float) -> list[tuple[float, float]]:
    """Return the corners of a square around the middle of an image."""
    low, high = (SIDE - side) / 2, (SIDE + side) / 2
    return [(low, low), (high, low), (high, high), (low, high), (low, low)]


def test_the_inner_part_of_an_outline_is_a_hole() -> None:
    ring = Outline.make_compound_path(Outline(square(8)), Outline(square(4)))
    image = _coverage(ring)
    assert image.sum() == 8 * 8 - 4 * 4
    assert image[SIDE // 2, SIDE // 2] == 0


def test_each_letter_has_its_images_and_the_nearest_mean_image_finds_most() -> None:
    letters = Letters().load(None)
    assert letters.train.label_counts(26).tolist() == [400] * 26
    inputs = letters.train.inputs.flatten(1).numpy()
    means = inputs.reshape(26, 400, -1).mean(axis=1)
    test = letters.test.inputs.flatten(1).numpy()
    nearest = ((test[:, None] - means) ** 2).sum(-1).argmin(1)
    # A guess finds 1 of 26. Small letters are a fifth, and few look like capitals.
    assert np.mean(nearest == letters.test.labels.numpy()) > 0.5
