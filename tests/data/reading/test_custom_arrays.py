from pathlib import Path

import numpy as np
import pytest
import torch

from overheard.core.errors import DataError
from overheard.core.seeds import Seed
from overheard.data.reading.custom_arrays import load_arrays
from overheard.data.reading.scales import Scale

X = np.random.default_rng(0).normal(3.0, 2.0, (20, 3))
Y = np.arange(20) % 2
WORDS = Y.astype(str)


def write_arrays(tmp_path: Path, **arrays: np.ndarray) -> Path:
    np.savez(tmp_path / "own.npz", **arrays)
    return tmp_path / "own.npz"


def test_a_fifth_of_each_label_is_held_out_with_its_users(tmp_path: Path) -> None:
    users = np.array(["ann", "bob"] * 10)
    dataset = load_arrays(write_arrays(tmp_path, x=X, y=Y, user=users), Seed(0))
    assert (len(dataset.train), len(dataset.test)) == (16, 4)
    assert dataset.test.label_counts(2).tolist() == [2, 2]
    assert dataset.user_names == ("ann", "bob")
    assert dataset.users is not None
    # Users stay with their rows: labels of ann are 0 and those of bob are 1.
    assert dataset.users.equal(dataset.train.labels)


def test_times_and_records_stay_with_their_examples(tmp_path: Path) -> None:
    # Two examples per record; the time of row r has rank 19 - r.
    records = np.arange(20) // 2
    path = write_arrays(
        tmp_path, x=X, y=records % 2, times=2020.5 - np.arange(20), records=records
    )
    dataset = load_arrays(path, Seed(0))
    assert dataset.records is not None
    assert dataset.times is not None
    # A fifth of the ten records is held out, each with both examples.
    assert sorted(dataset.records.bincount(minlength=10).tolist()) == [0] * 2 + [2] * 8
    assert dataset.test.label_counts(2).tolist() == [2, 2]
    assert ((19 - dataset.times) // 2).equal(dataset.records)
    assert (dataset.records % 2).equal(dataset.train.labels)


def test_times_and_records_may_come_with_a_test_part(tmp_path: Path) -> None:
    dates = np.array(["2004-08-02", "2003-01-01", "2005-01-01"])
    path = write_arrays(
        tmp_path,
        x_train=X[:3],
        y_train=Y[:3],
        times_train=dates,
        records_train=np.array(["a", "b", "a"]),
        x_test=X[3:5],
        y_test=Y[3:5],
    )
    dataset = load_arrays(path, Seed(0))
    assert dataset.times is not None
    assert dataset.times.tolist() == [1, 0, 2]
    assert dataset.records is not None
    assert dataset.records.tolist() == [0, 1, 0]
    assert dataset.users is None


def test_a_given_test_part_is_scaled_as_the_training_part(tmp_path: Path) -> None:
    path = write_arrays(
        tmp_path,
        x_train=np.array([[1.0], [3.0]]),
        y_train=np.array([0, 1]),
        x_test=np.array([[5.0]]),
        y_test=np.array([1]),
        class_names=np.array(["no", "yes"]),
    )
    dataset = load_arrays(path, Seed(0))
    # Mean 2, deviation 1.
    assert dataset.train.inputs.flatten().tolist() == [-1.0, 1.0]
    assert dataset.test.inputs.flatten().tolist() == [3.0]
    assert dataset.task.class_names == ("no", "yes")


@pytest.mark.parametrize(
    ("inputs", "shape"),
    [
        (np.arange(160, dtype=np.uint8).reshape(10, 4, 4), (1, 4, 4)),
        (np.arange(240, dtype=np.uint8).reshape(10, 2, 4, 3), (3, 2, 4)),
        (np.arange(160.0).reshape(10, 4, 4), (1, 4, 4)),
        (np.arange(240.0).reshape(10, 3, 2, 4), (3, 2, 4)),
        (np.arange(40).reshape(10, 4), (4,)),
    ],
)
def test_images_and_columns_get_their_shape(
    tmp_path: Path, inputs: np.ndarray, shape: tuple[int, ...]
) -> None:
    dataset = load_arrays(write_arrays(tmp_path, x=inputs, y=np.arange(10) % 2), Seed(0))
    assert dataset.task.shape == shape
    channels = dataset.train.inputs.transpose(0, 1).flatten(1)
    assert torch.allclose(channels.mean(1), torch.zeros(1), atol=1e-5)
    assert torch.allclose(channels.std(1, correction=0), torch.ones(1), atol=1e-4)


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
@pytest.mark.parametrize("channels", [1, 3])
def test_channels_are_found_first_and_last(
    tmp_path: Path, kind: type[np.generic], channels: int
) -> None:
    images = np.random.default_rng(0).integers(0, 256, (10, channels, 8, 6)).astype(kind)
    labels = np.arange(10) % 2
    first = load_arrays(write_arrays(tmp_path, x=images, y=labels), Seed(0))
    last = load_arrays(write_arrays(tmp_path, x=np.moveaxis(images, 1, 3), y=labels), Seed(0))
    assert first.task.shape == last.task.shape == (channels, 8, 6)
    assert torch.equal(first.train.inputs, last.train.inputs)
    assert torch.equal(first.test.inputs, last.test.inputs)
    told = [" ".join(one.reading.notes) for one in (first, last)]
    axis = "first" if kind is np.uint8 else "last"
    assert [f"read from the {axis} axis ({channels})" in one for one in told] == [
        kind is np.uint8,
        kind is not np.uint8,
    ]


def test_labels_may_be_names(tmp_path: Path) -> None:
    path = write_arrays(
        tmp_path,
        x_train=X[:3],
        y_train=np.array(["dog", "cat", "dog"]),
        x_test=X[3:5],
        y_test=np.array(["cat", "dog"]),
    )
    dataset = load_arrays(path, Seed(0))
    assert dataset.task.class_names == ("cat", "dog")
    assert dataset.train.labels.tolist() == [1, 0, 1]
    assert dataset.test.labels.tolist() == [0, 1]


def with_missing_value() -> np.ndarray:
    hole = X.copy()
    hole[3, 1] = np.nan
    return hole


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": X}, "no array 'y'"),
        ({"y": Y}, "no array 'x_train'"),
        ({"x": X, "y": Y[:-1]}, "one label each"),
        ({"x": X, "y": Y * 2 - 1}, "between 0 and"),
        ({"x": X, "y": Y + 0.5}, "whole numbers or names"),
        ({"x": X, "y": Y * 0}, "1 classes"),
        ({"x": X, "y": Y * 5000}, "1001 classes"),
        ({"x": X, "y": Y, "class_names": np.array(["one"])}, "1 classes"),
        ({"x": X, "y": Y, "user": Y[:3]}, "'user' must be 20"),
        ({"x": X, "y": Y, "times": Y[:3]}, "'times' must be 20 numbers or dates"),
        ({"x": X, "y": Y, "times": np.full(20, np.nan)}, "'times' must not have empty cells"),
        ({"x": X, "y": Y, "times": WORDS}, "'0', which is not a date"),
        ({"x": X, "y": Y, "records": X[:, 0]}, "'records' must be 20 whole numbers or names"),
        ({"x": X, "y": Y, "user_train": Y}, "name it 'user'"),
        (
            {"x_train": X, "y_train": Y, "x_test": X, "y_test": Y, "times": Y},
            "name it 'times_train'",
        ),
        ({"x": with_missing_value(), "y": Y}, "NaN"),
        ({"x": X * 1e306, "y": Y}, "far too large"),
        ({"x": X[:2], "y": Y[:2]}, "too few"),
        ({"x": X.astype(str), "y": Y}, "must be images"),
        ({"x": X[:0], "y": Y[:0]}, "must be images"),
        ({"x_train": X, "y_train": Y, "x_test": X[:, :2], "y_test": Y}, "one type and shape"),
        (
            {
                "x_train": X,
                "y_train": Y.astype(str),
                "x_test": X,
                "y_test": (Y + 1).astype(str),
            },
            "holds the label '2'",
        ),
    ],
)
def test_refuses_arrays_that_cannot_be_used(
    tmp_path: Path, arrays: dict[str, np.ndarray], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        load_arrays(write_arrays(tmp_path, **arrays), Seed(0))


def test_labels_that_begin_at_1_are_the_classes_that_occur(tmp_path: Path) -> None:
    np.savez(tmp_path / "own.npz", x=np.ones((30, 2)), y=np.array([2, 4, 7] * 10))
    dataset = load_arrays(tmp_path / "own.npz", Seed(0))
    assert dataset.task.class_names == ("2", "4", "7")
    assert dataset.train.labels.bincount().tolist() == [8, 8, 8]
    assert "No label is 0: the classes are 2, 4, 7" in dataset.reading.notes[0]


def test_tells_which_classes_have_no_example(tmp_path: Path) -> None:
    np.savez(tmp_path / "own.npz", x=np.ones((30, 2)), y=np.array([0, 1, 3] * 10))
    dataset = load_arrays(tmp_path / "own.npz", Seed(0))
    assert dataset.task.class_names == ("0", "1", "2", "3")
    assert dataset.reading.notes == ("No example has the label '2'.",)


@pytest.mark.parametrize(
    ("scale", "smallest", "largest"),
    [
        ("as_written", 0, 200),
        ("by_255", 0, 200 / 255),
        ("min_max", 0, 1),
        ("standardised", -1, 1),
    ],
)
def test_arrays_and_images_are_on_the_stated_scale(
    tmp_path: Path, scale: Scale, smallest: float, largest: float
) -> None:
    x = np.zeros((20, 2, 2), np.uint8)
    x[::2] = 200
    for inputs in (x, x.reshape(20, 4).astype(np.float32)):
        np.savez(tmp_path / "own.npz", x=inputs, y=np.arange(20) % 2)
        train = load_arrays(tmp_path / "own.npz", Seed(0), scale).train.inputs
        assert float(train.min()) == pytest.approx(smallest)
        assert float(train.max()) == pytest.approx(largest)
