"""Folders of images by class, as torchvision's ImageFolder reads them."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from overheard.core.errors import DataError
from overheard.data.datasets.custom import Own


def save(path: Path, level: int, mode: str = "L", size: tuple[int, int] = (4, 3)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, level if mode in "L1" else (level, 0, 255)[: len(mode)]).save(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "images"
    for number in range(5):
        save(root / "cat" / f"{number}.png", 10)
        save(root / "dog" / "more" / f"{number}.JPG", 200)
    (root / "dog" / ".DS_Store").write_bytes(b"x")
    return root


def test_each_folder_is_a_class(folder: Path) -> None:
    dataset = Own(str(folder), scale="as_written").load(None)
    assert dataset.task.class_names == ("cat", "dog")
    # One grey channel, 3 rows of 4 pixels.
    assert dataset.task.shape == (1, 3, 4)
    assert (len(dataset.train), len(dataset.test)) == (8, 2)
    cats = dataset.train.inputs[dataset.train.labels == 0]
    assert bool((cats == 10).all())


def test_grey_images_have_three_channels_if_so_stated(folder: Path) -> None:
    assert Own(str(folder), channels=3).load(None).task.shape == (3, 3, 4)


def test_one_image_in_colours_makes_all_so(folder: Path) -> None:
    save(folder / "cat" / "x.png", 255, "RGB")
    assert Own(str(folder)).load(None).task.shape == (3, 3, 4)
    assert Own(str(folder), channels=1).load(None).task.shape == (1, 3, 4)


def test_the_folders_of_parts_are_parts(tmp_path: Path) -> None:
    for part, count in (("train", 4), ("val", 3)):
        for number in range(count):
            for label in ("no", "yes"):
                save(tmp_path / part / label / f"{number}.png", number)
    dataset = Own(str(tmp_path)).load(None)
    assert dataset.task.class_names == ("no", "yes")
    assert (len(dataset.train), len(dataset.test)) == (8, 6)


def test_images_of_other_sizes_are_scaled_to_the_stated_side(folder: Path) -> None:
    save(folder / "cat" / "x.png", 10, size=(8, 8))
    with pytest.raises(
        DataError, match=r"has 8 x 8 pixels, but the first image has 4 x 3.*init"
    ):
        Own(str(folder)).load(None)
    dataset = Own(str(folder), image_side=2, scale="as_written").load(None)
    assert dataset.task.shape == (1, 2, 2)
    assert dataset.train.inputs.amin() == 10


def _write_bytes(folder: Path) -> None:
    (folder / "cat" / "x.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"x" * 50)


def _write_16_bits(folder: Path) -> None:
    Image.fromarray(np.zeros((3, 4), np.uint16)).save(folder / "cat" / "x.png")


def _link_out(folder: Path) -> None:
    save(folder.parent / "secret.png", 1)
    (folder / "cat" / "x.png").symlink_to(folder.parent / "secret.png")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_write_bytes, "x.png is no image that is read"),
        (_write_16_bits, "must have 8 bits a channel"),
        (_link_out, "links to outside of its folder"),
        (lambda folder: (folder / "empty").mkdir(), "empty has no image .* but is a class"),
        (lambda folder: (folder / "cat" / "x.gif").touch(), "read as .png or .jpg alone"),
        (lambda folder: save(folder / "cat/1/2/3/4/5.png", 1), "more than 4 deep"),
    ],
)
def test_says_which_file_cannot_be_read(folder: Path, change: object, told: str) -> None:
    assert callable(change)
    change(folder)
    with pytest.raises(DataError, match=told):
        Own(str(folder)).load(None)


def test_an_image_of_far_more_pixels_than_bytes_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 3000 x 3000 pixels are counted with 72 MB, and packed in some KB.
    save(folder / "cat" / "x.png", 1, size=(3000, 3000))
    with pytest.raises(
        DataError, match=r"x.png has .* bytes on the disk and unpacks to 72000000"
    ):
        Own(str(folder), image_side=4).load(None)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"neither folders of images by class, nor .json"):
        Own(str(tmp_path)).load(None)


def test_a_description_beside_the_classes_makes_no_leaf(folder: Path) -> None:
    (folder / "dataset-metadata.json").write_text('{"title": "cats and dogs"}')
    assert Own(str(folder)).load(None).task.class_names == ("cat", "dog")


def test_no_class_is_read_from_outside(folder: Path, tmp_path: Path) -> None:
    save(tmp_path / "outside" / "1.png", 0)
    (folder / "fox").symlink_to(tmp_path / "outside")
    with pytest.raises(DataError, match=r"fox links to outside of .*images: replace"):
        Own(str(folder)).load(None)


def test_a_file_that_is_no_image_is_named(folder: Path) -> None:
    (folder / "cat" / "9.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"9\.png is neither PNG nor JPEG: save it again"):
        Own(str(folder)).load(None)
