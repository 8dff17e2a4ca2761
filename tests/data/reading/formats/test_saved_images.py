"""Images that Hugging Face's `datasets` saved, or a function returned, are inputs."""

import io
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from overheard.core.errors import DataError
from overheard.data.datasets.custom import Own
from overheard.data.reading.formats.image_folder import ImageSettings
from overheard.data.reading.formats.saved_images import images_of_returned, read_saved_images

FEATURES = {
    "photo": {"_type": "Image"},
    "label": {"_type": "ClassLabel", "names": ["cat", "dog"]},
}


def png(level: int, width: int = 3, height: int = 2) -> bytes:
    page = io.BytesIO()
    Image.new("L", (width, height), level).save(page, "PNG")
    return page.getvalue()


def saved(
    folder: Path,
    images: object,
    labels: list[int] | list[float] | list[str],
    features: object = FEATURES,
) -> Path:
    """Write a folder as `datasets.Dataset.save_to_disk` does."""
    folder.mkdir()
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    table = pa.table({"photo": pa.array(images, kind), "label": labels})
    with pa.ipc.new_stream(str(folder / "data-00000-of-00001.arrow"), table.schema) as out:
        out.write_table(table)
    named = [{"filename": "data-00000-of-00001.arrow"}]
    (folder / "state.json").write_text(json.dumps({"_data_files": named}))
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))
    return folder


def stored(content: bytes | None, path: str | None = None) -> object:
    return {"bytes": content, "path": path}


def test_images_and_names_of_classes_are_read(tmp_path: Path) -> None:
    images = [stored(png(10 * one)) for one in range(10)]
    folder = saved(tmp_path / "spare", images, [0, 1] * 5)
    data = Own(str(folder), scale="as_written").load(None)
    assert data.task.class_names == ("cat", "dog")
    assert tuple(data.task.shape) == (1, 2, 3)
    inputs = np.concatenate([data.train.inputs, data.test.inputs])
    assert sorted({float(one.mean()) for one in inputs}) == [10.0 * one for one in range(10)]


def test_classes_have_the_order_that_the_dataset_states(tmp_path: Path) -> None:
    features = FEATURES | {"label": {"_type": "ClassLabel", "names": ["dog", "ape", "cat"]}}
    images = [stored(png(one % 3)) for one in range(30)]
    folder = saved(tmp_path / "spare", images, [one % 3 for one in range(30)], features)
    np.savez(
        tmp_path / "records.npz",
        x=np.full((2, 2, 3, 1), 9, np.uint8),
        y=np.array(["cat", "dog"]),
        member=np.array([1, 0]),
    )
    data = Own(str(folder), scale="as_written", candidates=str(tmp_path / "records.npz")).load(
        None
    )
    assert data.task.class_names == ("dog", "ape", "cat")
    assert data.train.labels.tolist() == data.train.inputs.mean((1, 2, 3)).tolist()
    assert data.listed.records.labels.tolist() == [2, 0]


def test_an_image_that_lies_elsewhere_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "outside.png").write_bytes(png(7))
    named = stored(None, str(tmp_path / "outside.png"))
    folder = saved(tmp_path / "spare", [stored(png(1)), named], [0, 1])
    with pytest.raises(DataError, match="image 2 has no bytes: it lies elsewhere"):
        read_saved_images(folder, ImageSettings(), "label")


def test_pixels_are_counted_before_an_image_is_decoded(tmp_path: Path) -> None:
    # A header that states 60,000 x 60,000 pixels, and no pixels.
    large = bytearray(png(1))
    large[16:24] = (60_000).to_bytes(4, "big") * 2
    folder = saved(tmp_path / "spare", [stored(bytes(large))], [0])
    with pytest.raises(DataError, match="spare: image 1"):
        read_saved_images(folder, ImageSettings(), "label")


@pytest.mark.parametrize(
    ("content", "told"), [(b"no image", "neither PNG nor JPEG"), (png(1, 9), "9 x 2 pixels")]
)
def test_an_image_that_is_none_or_of_another_size_is_told(
    content: bytes, told: str, tmp_path: Path
) -> None:
    folder = saved(tmp_path / "spare", [stored(png(1)), stored(content)], [0, 1])
    with pytest.raises(DataError, match=f"image 2 .*{told}"):
        read_saved_images(folder, ImageSettings(), "label")


def test_a_row_without_an_image_is_told_whatever_bytes_it_hides(tmp_path: Path) -> None:
    parts = [pa.array([png(1)] * 2), pa.nulls(2, pa.string())]
    hidden = pa.StructArray.from_arrays(parts, ["bytes", "path"], mask=pa.array([False, True]))
    folder = saved(tmp_path / "spare", hidden, [0, 1])
    with pytest.raises(DataError, match="image 2 has no bytes"):
        read_saved_images(folder, ImageSettings(), "label")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_no_class(value: float, tmp_path: Path) -> None:
    features = {"photo": {"_type": "Image"}}
    folder = saved(tmp_path / "spare", [stored(png(1))] * 2, [1.0, value], features)
    with pytest.raises(DataError, match=r"not finite, such as NaN, in 1 of its rows"):
        read_saved_images(folder, ImageSettings(), "label")


@pytest.mark.parametrize(
    ("names", "labels", "told"),
    [
        (["cat", "cat"], [0, 1], "must be texts that differ"),
        ([{"a": 1}, None], [0, 1], "must be texts that differ"),
        (["cat", "dog"], [0, -1], "such as -1 for no label"),
    ],
)
def test_names_never_make_one_class_of_two_nor_a_class_of_records_without_a_label(
    names: list[object], labels: list[int], told: str, tmp_path: Path
) -> None:
    features = FEATURES | {"label": {"_type": "ClassLabel", "names": names}}
    folder = saved(tmp_path / "spare", [stored(png(1))] * 2, labels, features)
    with pytest.raises(DataError, match=told):
        read_saved_images(folder, ImageSettings(), "label")


def test_a_label_beyond_the_names_and_a_column_that_is_not_there_are_told(
    tmp_path: Path,
) -> None:
    folder = saved(tmp_path / "spare", [stored(png(1))] * 2, [0, 2])
    with pytest.raises(DataError, match="a label is 2, but 2 classes have names"):
        read_saved_images(folder, ImageSettings(), "label")
    os.remove(folder / "dataset_info.json")
    stranger = {"no\u001b[31m": {"_type": "Image"}}
    (folder / "dataset_info.json").write_text(json.dumps({"features": stranger}))
    with pytest.raises(DataError, match="which are no column") as refused:
        read_saved_images(folder, ImageSettings(), "label")
    assert "\u001b" not in str(refused.value)


def test_a_long_text_is_no_class(tmp_path: Path) -> None:
    """In an array all names would take its memory."""
    features = {"photo": {"_type": "Image"}}
    folder = saved(tmp_path / "spare", [stored(png(1))] * 2, ["x" * 101, "y"], features)
    with pytest.raises(DataError, match="not a valid name: use 1 to 100 printable"):
        read_saved_images(folder, ImageSettings(), "label")


def pictures() -> object:
    datasets = pytest.importorskip("datasets")
    images = [Image.new("RGB", (4, 4), (one, 0, 0)) for one in range(10)]
    features = datasets.Features(
        {"img": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])}
    )
    return datasets.Dataset.from_dict({"img": images, "label": [0, 1] * 5}, features=features)


@pytest.mark.slow
def test_a_dataset_of_images_is_read_from_a_function_and_from_where_it_was_saved(
    tmp_path: Path,
) -> None:
    of_function = Own(f"{__name__}:pictures").load(None)
    pictures().save_to_disk(tmp_path / "spare")
    of_folder = Own(str(tmp_path / "spare")).load(None)
    assert tuple(of_function.task.shape) == tuple(of_folder.task.shape) == (3, 4, 4)
    assert of_function.task.class_names == of_folder.task.class_names == ("cat", "dog")
    assert np.array_equal(of_function.train.inputs, of_folder.train.inputs)


def test_of_several_saved_datasets_one_must_be_named(tmp_path: Path) -> None:
    (tmp_path / "both").mkdir()
    (tmp_path / "both" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(DataError, match="both is to hold several datasets, and has none"):
        Own(str(tmp_path / "both")).load(None)
    for part in ("train", "test"):
        saved(tmp_path / "both" / part, [stored(png(one)) for one in range(10)], [0, 1] * 5)
    with pytest.raises(DataError, match=r"both holds the datasets test, train: .*both/train$"):
        Own(str(tmp_path / "both")).load(None)
    assert Own(str(tmp_path / "both" / "test")).load(None).task.class_names == ("cat", "dog")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "labels", "told"),
    [
        (
            "string",
            ["cat", None, "dog"],
            "the column 'label' has empty values: drop those rows",
        ),
        ("float32", [0.0, float("nan"), 1.0], "not finite, such as NaN, in 1 of its rows"),
    ],
)
def test_a_function_returns_no_image_without_a_class(
    kind: str, labels: list[object], told: str
) -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"img": datasets.Image(), "label": datasets.Value(kind)})
    images = [stored(png(one)) for one in range(3)]
    returned = datasets.Dataset.from_dict({"img": images, "label": labels}, features=features)
    with pytest.raises(DataError, match=told):
        images_of_returned(returned, "app:data", ImageSettings(), "label")
