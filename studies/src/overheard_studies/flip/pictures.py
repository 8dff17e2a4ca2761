"""Images drawn pixel by pixel as SVG, and their similarity to their class."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from markupsafe import Markup
from torch import Tensor
from torch.nn.functional import normalize

from overheard.core.examples import Examples
from overheard.findings.names import shorten

BRIGHTNESS_RANGE = 2.0
"""Standard deviations from the mean at which a pixel is black or white."""

BRIGHTNESS_LEVELS = 15
"""Brightness levels from black to white: one digit per channel, to keep pages small."""

IMAGE_SIZE = 96
"""Width and height of a drawn image in CSS pixels."""

IMAGE_GAP = 16
"""Distance between two images in CSS pixels."""

LINE_HEIGHT = 15
"""Distance between two lines of a caption in CSS pixels."""

CAPTION_CHARACTERS = 15
"""Largest number of characters in a line below an image."""


@final
@dataclass(frozen=True, slots=True)
class Picture:
    """An image and its caption.

    Args:
        pixels: standardized pixels; one channel or three.
        caption: lines of the caption.

    """

    pixels: Float[Tensor, "channels height width"]
    caption: tuple[str, ...]


def draw_picture_row(pictures: Sequence[Picture], label: str) -> Markup:
    """Draw pictures side by side on one brightness scale, as an `svg` element.

    Args:
        pictures: pictures from the left.
        label: description for screen readers.

    """
    width = len(pictures) * (IMAGE_SIZE + IMAGE_GAP) - IMAGE_GAP
    height = IMAGE_SIZE + LINE_HEIGHT * max(len(one.caption) for one in pictures) + 6
    images = Markup("").join(
        _placed(one, index * (IMAGE_SIZE + IMAGE_GAP)) for index, one in enumerate(pictures)
    )
    return Markup(
        '<svg viewBox="0 0 {0} {1}" role="img" aria-label="{2}" '
        'width="{0}" height="{1}">{3}</svg>'
    ).format(width, height, label, images)


def _placed(picture: Picture, left: int) -> Markup:
    lines = Markup("").join(
        Markup('<text x="{}" y="{}" font-size="12" fill="var(--ink)">{}</text>').format(
            left, IMAGE_SIZE + LINE_HEIGHT * number, shorten(line, CAPTION_CHARACTERS)
        )
        for number, line in enumerate(picture.caption, start=1)
    )
    scale = IMAGE_SIZE / picture.pixels.shape[2]
    return (
        Markup('<g transform="translate({} 0) scale({})" shape-rendering="crispEdges">').format(
            left, scale
        )
        + _squares(picture.pixels)
        + Markup("</g>")
        + lines
    )


def _squares(pixels: Float[Tensor, "channels height width"]) -> Markup:
    """Draw one path for each colour, with a 1 x 1 square for each of its pixels."""
    levels = (
        (
            (pixels.clamp(-BRIGHTNESS_RANGE, BRIGHTNESS_RANGE) + BRIGHTNESS_RANGE)
            / (2 * BRIGHTNESS_RANGE)
            * BRIGHTNESS_LEVELS
        )
        .round()
        .int()
    )
    colours = levels.expand(3, *pixels.shape[1:])  # (channels, height, width)
    paths_by_colour = defaultdict[str, list[str]](list)
    for y in range(colours.shape[1]):
        for x in range(colours.shape[2]):
            colour = "".join(f"{level:x}" for level in colours[:, y, x].tolist())
            paths_by_colour[colour].append(f"M{x} {y}h1v1h-1z")
    return Markup("").join(
        Markup('<path fill="#{}" d="{}"/>').format(colour, "".join(squares))
        for colour, squares in paths_by_colour.items()
    )


def measure_class_similarity(
    inputs: Float[Tensor, "examples ..."], held: Examples, classes: int
) -> Float[Tensor, "examples classes"]:
    """Return the cosine of each example and each class's mean, relative to the overall mean.

    The values are in -1..1, and 0 for an example equal to the overall mean. All classes have
    the same weight in the overall mean.

    Args:
        inputs: examples that are compared.
        held: images of the class means; one or more of each class.
        classes: number of classes.

    """
    flat = held.inputs.flatten(1).double()
    means = torch.stack([flat[held.labels == label].mean(0) for label in range(classes)])
    overall_mean = means.mean(0)
    directions = normalize(inputs.flatten(1).double() - overall_mean, dim=1)
    return directions @ normalize(means - overall_mean, dim=1).T


def is_nearest_to_its_class(
    similarities: Float[Tensor, "examples classes"], labels: Int[Tensor, " examples"]
) -> Bool[Tensor, " examples"]:
    """Return whether an example is nearest to its own class's mean; a guess has 1 / classes."""
    return similarities.argmax(1) == labels


def class_margin(
    similarities: Float[Tensor, "examples classes"], labels: Int[Tensor, " examples"]
) -> Float[Tensor, " examples"]:
    """Return the similarity to the own class's mean minus the mean similarity to other classes.

    The margin is 0 if the example is no more similar to its own class.
    """
    own = similarities.gather(1, labels[:, None])[:, 0]
    others = (similarities.sum(1) - own) / (similarities.shape[1] - 1)
    return own - others
