"""Letters: printed letters in many fonts, drawn here, that no method was tuned on."""

from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import ClassVar, final

import numpy as np
import torch
from matplotlib import get_data_path
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path as Outline
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.dataset import Dataset, DataSource

FONTS = ("DejaVuSans*", "DejaVuSerif*", "STIXGeneral*", "cmr10", "cmss10", "cmtt10", "cmb10")
"""Fonts that matplotlib ships; others of its fonts have symbols in place of letters."""

SIDE = 14
"""Rows and columns of an image."""

SUBPIXELS = 3
"""Points a pixel, in each direction, at which an outline is tested."""

TRAIN, TEST = 400, 10
"""Images of each letter."""

LOWER_CASE = 0.2
"""Share of images that show the small letter."""


@final
@dataclass(frozen=True, slots=True)
class Letters(DataSource):
    """Images of 14 x 14: turned, sheared, scaled and moved letters in some noise."""

    name: ClassVar[str] = "letters"
    source: ClassVar[str] = "drawn here, in the fonts that matplotlib ships"

    def load(self, folder: Path | None) -> Dataset:
        """Draw the images; the folder is not used. They are the same in each call."""
        generator = Seed(26).numpy()
        fonts = [
            FontProperties(fname=path)
            for pattern in FONTS
            for path in sorted(Path(get_data_path(), "fonts", "ttf").glob(f"{pattern}.ttf"))
            if "Display" not in path.name
        ]
        pixels = np.array(
            [
                [_draw(letter, fonts, generator) for _ in range(TRAIN + TEST)]
                for letter in ascii_uppercase
            ]
        )
        inputs = torch.from_numpy((pixels - pixels.mean()) / pixels.std()).float().unsqueeze(2)
        labels = torch.arange(len(inputs)).unsqueeze(1).expand(-1, TRAIN + TEST)
        train, test = (
            Examples(inputs[:, rows].flatten(0, 1), labels[:, rows].flatten())
            for rows in (slice(TRAIN), slice(TRAIN, None))
        )
        return Dataset(train, test, Task((1, SIDE, SIDE), tuple(ascii_uppercase)))


def _draw(
    letter: str, fonts: list[FontProperties], generator: np.random.Generator
) -> np.ndarray:
    """Return an image of a letter, with rows from top to bottom; ink is 1."""
    shown = letter.lower() if generator.random() < LOWER_CASE else letter
    outline = TextPath((0, 0), shown, prop=fonts[generator.integers(len(fonts))])
    box = outline.get_extents()
    scale = 0.65 * SIDE / max(box.height, box.width) * np.exp(generator.normal(0, 0.12))
    changed = (
        Affine2D()
        .translate(-(box.x0 + box.x1) / 2, -(box.y0 + box.y1) / 2)
        .scale(scale, -scale)
        .rotate_deg(generator.normal(0, 8))
        .skew(generator.normal(0, 0.15), 0)
        .translate(*(SIDE / 2 + generator.normal(0, 0.5, 2)))
    )
    image = _coverage(changed.transform_path(outline))
    return np.clip(image + generator.normal(0, 0.08, image.shape), 0, 1)


def _coverage(outline: Outline) -> np.ndarray:
    """Return the share of each pixel that is inside an outline, whose inner parts are holes."""
    steps = (np.arange(SIDE * SUBPIXELS) + 0.5) / SUBPIXELS
    points = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    inside = np.zeros(len(points), dtype=bool)
    for polygon in outline.to_polygons():
        inside ^= Outline(polygon).contains_points(points)
    shares: np.ndarray = inside.reshape(SIDE, SUBPIXELS, SIDE, SUBPIXELS).mean(axis=(1, 3))
    return shares
