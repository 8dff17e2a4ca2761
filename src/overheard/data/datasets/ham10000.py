"""HAM10000: skin lesions by diagnosis, colour images of 28 x 28 or grey ones of 8 x 8."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, final

from overheard.data.dataset import Dataset, DataSource
from overheard.data.reading.folder import require_file
from overheard.data.reading.images import image_dataset, read_images

CLASS_NAMES = ("akiec", "bcc", "bkl", "df", "mel", "nv", "vasc")


@final
@dataclass(frozen=True, slots=True)
class Ham10000(DataSource):
    """Dermatoscopic images in seven classes; more than two thirds are in one class (nv).

    Args:
        side: 28 = colour, one image per lesion, no lesion is in both training and test part.
            8 = grey, all 10,015 images, a lesion may be in both parts.

    """

    side: Literal[28, 8] = 28

    name: ClassVar[str] = "ham10000"
    source: ClassVar[str] = (
        "Tschandl, Rosendahl, Kittler 2018 (Harvard Dataverse, doi:10.7910/DVN/DBW86T); "
        "CC BY-NC 4.0"
    )

    def load(self, folder: Path | None) -> Dataset:
        """Read `ham10000/ham10000_28x28_rgb.npz` or `ham10000/ham10000_8x8_gray_full.npz`."""
        is_grey = self.side == 8
        file = "ham10000_8x8_gray_full.npz" if is_grey else "ham10000_28x28_rgb.npz"
        shape = (8, 8) if is_grey else (28, 28, 3)
        path = require_file(folder, (f"ham10000/{file}",), self.source)
        return image_dataset(
            read_images(path, "train", shape, len(CLASS_NAMES)),
            read_images(path, "test", shape, len(CLASS_NAMES)),
            CLASS_NAMES,
        )
