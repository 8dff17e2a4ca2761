"""Images in folders by class, as torchvision's ImageFolder reads them."""

import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

import numpy as np
from jaxtyping import Shaped, UInt8

from overheard.core.errors import DataError
from overheard.core.escape import escape_unprintable
from overheard.disk.limits import ANY_RATIO, ARRAY, refuse_large
from overheard.disk.reading import read_small_file

SUFFIXES = (".png", ".jpg", ".jpeg")

OTHER_IMAGES = (".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff", ".webp")
"""Images that ImageFolder reads and this reader does not."""

TRAIN, TESTS = "train", ("test", "val", "valid", "validation")
"""Folders of parts; of those for tests, the first that is there is read."""

MAX_FILES, MAX_DEPTH = 1_000_000, 4
"""The most files of a folder, and the most folders that lie in each other."""

NUMBER_BYTES = 8
"""Bytes that a number of an image takes while it is converted."""

GREY_MODES = ("1", "L", "LA")

EIGHT_BITS = (*GREY_MODES, "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr")
"""Modes of Pillow with eight bits a channel."""

Channels = Literal[1, 3]


@final
@dataclass(frozen=True, slots=True)
class ImageSettings:
    """How images of files become inputs.

    Args:
        side: height and width to which each is scaled; None = all must have one size.
        channels: 1 = grey, 3 = colours; None = grey if all files are grey.

    """

    side: int | None = None
    channels: Channels | None = None


def read_image_folder(
    path: Path, settings: ImageSettings
) -> Mapping[str, Shaped[np.ndarray, "examples ..."]]:
    """Read images and the names of their classes, as the arrays of an `.npz`.

    A class is a folder in the folder, with images or folders of them. If there is a folder
    `train`, classes lie in it, and in one of `TESTS` those of the test part. Other files than
    images are left out.

    Args:
        path: the folder.
        settings: size and channels of the images.

    Returns:
        "x" (examples x height x width x channels, uint8) and "y" (names); with a test part
        "x_train", "y_train", "x_test" and "y_test".

    Raises:
        DataError: if there are no classes, images are damaged, are too large or differ in
            size, or a link leads out of the folder.

    """
    folders = _folders(path, path)
    test = next((one for one in TESTS if one in folders), None)
    if TRAIN not in folders:
        return dict(zip("xy", _part(path, path, settings), strict=True))
    parts = {"train": TRAIN, **({} if test is None else {"test": test})}
    read = {part: _part(path, path / name, settings) for part, name in parts.items()}
    if test is None:
        return dict(zip("xy", read["train"], strict=True))
    images = _with_one_form(path, [read["train"][0], read["test"][0]])
    return {
        "x_train": images[0], "y_train": read["train"][1],
        "x_test": images[1], "y_test": read["test"][1],
    }  # fmt: skip


def _folders(path: Path, root: Path) -> list[str]:
    """Return the names of the folders in a folder; links to those inside the root, too."""
    found = sorted(one.name for one in _entries(path) if one.is_dir())
    for name in found:
        if not (path / name).resolve().is_relative_to(root.resolve()):
            raise DataError(
                f"{_shown(path / name)} links to outside of {root}: replace the link by the "
                "folder itself"
            )
    return found


def _entries(path: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return sorted(entries, key=lambda one: one.name)
    except OSError as error:
        raise DataError(
            f"{_shown(path)} cannot be read ({error.strerror}): check the path"
        ) from error


def _part(
    root: Path, path: Path, settings: ImageSettings
) -> tuple[
    UInt8[np.ndarray, "examples height width channels"], Shaped[np.ndarray, " examples"]
]:
    """Read the images of a part, and the names of their classes."""
    images, names, size = list[UInt8[np.ndarray, "..."]](), list[str](), 0
    count = 0
    for name in _folders(path, root):
        before = len(images)
        for file in _files(path / name, MAX_DEPTH):
            count += 1
            if count > MAX_FILES:
                raise DataError(f"{path} has more than {MAX_FILES} files: give a part of them")
            suffix = file.suffix.lower()
            if suffix in OTHER_IMAGES:
                raise DataError(
                    f"{_shown(file)} is read as .png or .jpg alone: save it as .png"
                )
            if suffix not in SUFFIXES:
                continue
            image = read_image(file, root, settings)
            size += NUMBER_BYTES * image.size
            refuse_large(f"{path}: its images", size, DataError, part=ARRAY)
            _refuse_other_size(_shown(file), image, images)
            images.append(image)
            names.append(name)
        if len(images) == before:
            raise DataError(
                f"{_shown(path / name)} has no image (.png, .jpg), but is a class, as each "
                "folder is: remove it, or add its images"
            )
    if not images:
        raise DataError(
            f"{path} has neither folders of images by class, nor .json files of LEAF, nor what "
            "datasets.Dataset.save_to_disk writes: name another folder, or a file"
        )
    return _stacked(images), np.array(names)


def stack_images(
    path: Path, contents: Iterable[tuple[str, bytes]], settings: ImageSettings
) -> UInt8[np.ndarray, "examples height width channels"]:
    """Return the pixels of PNG and JPEG images.

    Args:
        path: where they are from, for messages.
        contents: the place of each, for messages, and its bytes.
        settings: their size and channels.

    Raises:
        DataError: if there is none, or one is damaged, too large, or of another size.

    """
    images, size = list[UInt8[np.ndarray, "..."]](), 0
    for place, content in contents:
        image = decode_image(content, place, settings)
        size += NUMBER_BYTES * image.size
        refuse_large(f"{path}: its images", size, DataError, part=ARRAY)
        _refuse_other_size(place, image, images)
        images.append(image)
    if not images:
        raise DataError(f"{_shown(path)} has no image: name other data")
    return _stacked(images)


def _stacked(
    images: Sequence[UInt8[np.ndarray, "..."]],
) -> UInt8[np.ndarray, "examples height width channels"]:
    channels = max(image.shape[2] for image in images)
    return np.stack([np.broadcast_to(one, (*one.shape[:2], channels)) for one in images])


def _refuse_other_size(
    place: str, image: UInt8[np.ndarray, "..."], before: Sequence[UInt8[np.ndarray, "..."]]
) -> None:
    """Refuse an image that has another size than the first.

    Raises:
        DataError: if it has.

    """
    if before and image.shape[:2] != before[0].shape[:2]:
        raise DataError(
            f"{place} has {_size(image)} pixels, but the first image has {_size(before[0])}: "
            "state the side to which the app scales them, such as image_side = 32 in the "
            "plan's source (of init: --read 'image_side = 32')"
        )


def _files(path: Path, depth: int) -> Iterator[Path]:
    """Yield all files in a folder, in the order of their names."""
    if not depth:
        raise DataError(
            f"{_shown(path)}: folders lie more than {MAX_DEPTH} deep in each other: move the "
            "images up"
        )
    for one in _entries(path):
        # A link to a folder could lead around in a circle.
        if one.is_dir(follow_symlinks=False):
            yield from _files(Path(one.path), depth - 1)
        else:
            yield Path(one.path)


def read_image(
    file: Path, inside: Path, settings: ImageSettings
) -> UInt8[np.ndarray, "height width channels"]:
    """Read a PNG or JPEG image.

    Args:
        file: the file.
        inside: the folder that it may not link out of.
        settings: its size and channels.

    Returns:
        Its pixels, 0 to 255, with one channel if it is grey and no channels are stated.

    Raises:
        DataError: if it is damaged, too large, or has other than eight bits a channel.

    """
    content = read_small_file(file, DataError, inside=inside, part=ANY_RATIO)
    return decode_image(content, _shown(file), settings)


def decode_image(
    content: bytes, place: str, settings: ImageSettings
) -> UInt8[np.ndarray, "height width channels"]:
    """Return the pixels of a PNG or JPEG image; see `read_image`."""
    from PIL import Image, UnidentifiedImageError

    # Pillow raises errors of many kinds.
    try:
        with Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as image:
            pixels = image.width * image.height * NUMBER_BYTES
            refuse_large(place, pixels, DataError, part=ARRAY, packed=len(content))
            if image.mode not in EIGHT_BITS:
                raise DataError(
                    f"{place} has the mode {image.mode} of Pillow, but must have 8 bits a "
                    "channel: save it again so"
                )
            is_grey = (
                image.mode in GREY_MODES
                if settings.channels is None
                else settings.channels == 1
            )
            plain = image.convert("L" if is_grey else "RGB")
            if settings.side is not None:
                plain = plain.resize((settings.side, settings.side), Image.Resampling.BILINEAR)
            array = np.asarray(plain, np.uint8)
    except DataError:
        raise
    except UnidentifiedImageError as error:
        raise DataError(f"{place} is neither PNG nor JPEG: save it again as .png") from error
    except Exception as error:
        why = escape_unprintable(str(error)[:200])
        raise DataError(f"{place} is no image that is read ({why}): save it again") from error
    return array[:, :, None] if array.ndim == 2 else array


def _with_one_form(
    path: Path, parts: list[UInt8[np.ndarray, "examples height width channels"]]
) -> list[UInt8[np.ndarray, "examples height width channels"]]:
    """Return images of two parts with as many channels, if all have one size."""
    if parts[0].shape[1:3] != parts[1].shape[1:3]:
        raise DataError(
            f"{path}: images of its parts have {_size(parts[0][0])} and {_size(parts[1][0])} "
            "pixels: state image_side in the plan's source (of init: --read 'image_side = 32')"
        )
    channels = max(one.shape[3] for one in parts)
    return [np.broadcast_to(one, (*one.shape[:3], channels)) for one in parts]


def _size(image: UInt8[np.ndarray, "height width channels"]) -> str:
    return f"{image.shape[1]} x {image.shape[0]}"


def _shown(path: Path) -> str:
    return escape_unprintable(str(path))
