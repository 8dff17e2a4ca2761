"""A user's own arrays and functions, and where data come from."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import DataError
from overheard.core.seeds import Seed
from overheard.core.task import TaskKind
from overheard.data.reading.arrays import ArrayFile
from overheard.data.reading.custom_arrays import Provenance, load_arrays, read_provenance
from overheard.data.reading.custom_data import load_custom_data
from overheard.data.reading.scales import Scale

MODULE = """
import torch
from overheard.core.examples import Examples
from overheard.core.task import Task
from overheard.data.dataset import Dataset

number = 3

def pair():
    return torch.arange(10.0).double()[:, None], torch.arange(10) % 2

def tensors():
    return torch.utils.data.TensorDataset(*pair())

def unequal():
    return torch.zeros(4, 1), torch.zeros(3).long()

def below():
    return torch.zeros(4, 1), torch.full((4,), -1)

def bytes_of_images():
    return torch.zeros(10, 1, dtype=torch.uint8), torch.arange(10) % 2

def several():
    return torch.zeros(10, 1), torch.tensor([[0, 1]] * 5 + [[1, 1]] * 5)

def numbers():
    return torch.zeros(10, 1), torch.arange(10.0)

def wrong():
    return 3

def right():
    part = Examples(torch.zeros(2, 1), torch.tensor([0, 1]))
    return Dataset(part, part, Task((1,), ("a", "b")))
"""


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a working directory with a module of the user."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "mine_of_the_user.py").write_text(MODULE)
    return tmp_path


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize("name", ["pair", "tensors"])
def test_a_function_may_return_inputs_and_labels(name: str) -> None:
    dataset = load_custom_data(f"mine_of_the_user:{name}")
    # A fifth of ten is held out, one of each label.
    assert sorted(dataset.test.labels.tolist()) == [0, 1]
    assert len(dataset.train) == 8
    assert dataset.task.class_names == ("0", "1")
    inputs = [*dataset.train.inputs.flatten().tolist(), *dataset.test.inputs.flatten().tolist()]
    assert sorted(inputs) == [float(number) for number in range(10)]


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("mine_of_the_user:wrong", "of type int: .*Dataset, a TensorDataset .*inputs, labels"),
        (
            "mine_of_the_user:unequal",
            "4 inputs and labels of shape .3,.: give one label per input",
        ),
        ("mine_of_the_user:below", "labels must be numbers from 0, but one is -1"),
        ("mine_of_the_user:bytes_of_images", r"inputs\.float\(\) / 255"),
        ("mine_of_the_user:number", "not a function"),
        ("mine_of_the_user:absent", "has no function or class absent"),
        ("no_such_module:right", "PYTHONPATH"),
        ("data.docx", "is not a data reference"),
        ("a b:c", "is not a data reference"),
        ("absent.npz", "there is no file absent.npz"),
        ("absent.csv.gz", "correct the path"),
    ],
)
def test_refuses_a_reference_to_no_data(reference: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_custom_data(reference)


def test_paths_are_relative_to_the_working_directory(directory: Path) -> None:
    (directory / "sub").mkdir()
    np.savez(directory / "sub" / "a.npz", x=np.eye(10), y=np.arange(10) % 2)
    assert len(load_custom_data("sub/a.npz").train) == 8
    (directory / "t.csv").write_text("a,b,diagnosis\n" + "1,x,ill\n2,y,well\n" * 5)
    assert load_custom_data("t.csv", label="diagnosis").task.class_names == ("ill", "well")


def test_times_and_attributes_are_columns_of_a_table(directory: Path) -> None:
    rows = "1,x,ann,m,2020\n2,y,bob,f,2019\n" * 5
    (directory / "t.csv").write_text("a,diagnosis,who,sex,year\n" + rows)
    settings = {"label": "diagnosis", "user": "who", "time": "year"}
    dataset = load_custom_data("t.csv", **settings, attributes=("sex",))
    assert dict(dataset.attributes) == {"sex": ("m", "f")}
    assert dataset.times is not None
    assert dataset.users is not None
    # The year of ann is later.
    assert dataset.times.equal(1 - dataset.users)


@pytest.mark.parametrize("reference", ["mine_of_the_user:right", "absent.npz"])
@pytest.mark.usefixtures("directory")
def test_refuses_time_and_attributes_of_data_that_are_no_table(reference: str) -> None:
    with pytest.raises(DataError, match="are for the columns of a table"):
        load_custom_data(reference, time="year")
    with pytest.raises(DataError, match="are for the columns of a table"):
        load_custom_data(reference, attributes=("sex",))


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    ("name", "kind", "outputs"), [("several", "multi_label", 2), ("numbers", "regression", 1)]
)
def test_the_form_of_the_labels_shows_the_task(name: str, kind: str, outputs: int) -> None:
    dataset = load_custom_data(f"mine_of_the_user:{name}")
    assert (dataset.task.kind, dataset.task.outputs) == (kind, outputs)
    assert (len(dataset.train), len(dataset.test)) == (8, 2)
    assert dataset.train.loss_labels.shape == (8, outputs)


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


@pytest.mark.parametrize("labels", [Y, Y.astype(bool), Y / 1, Y[:, None] / 1])
def test_zeros_and_ones_of_any_type_are_two_classes(tmp_path: Path, labels: np.ndarray) -> None:
    dataset = load_arrays(write_arrays(tmp_path, x=X, y=labels), Seed(0))
    assert (dataset.task.kind, dataset.task.class_names) == ("classification", ("0", "1"))
    assert dataset.test.label_counts(2).tolist() == [2, 2]


def test_rows_of_zeros_and_ones_are_several_labels(tmp_path: Path) -> None:
    path = write_arrays(tmp_path, x=X, y=np.stack((Y, 1 - Y, Y * 0), 1))
    dataset = load_arrays(path, Seed(0))
    assert (dataset.task.kind, dataset.task.outputs) == ("multi_label", 3)
    rows = dataset.train.loss_labels
    assert len(rows) == 16
    assert bool((rows.sum(1) == 1).all())


@pytest.mark.parametrize(
    ("labels", "task"), [(X[:, 0] * 2.5, "classification"), (Y * 3, "regression")]
)
def test_numbers_to_predict_stay_as_they_are(
    tmp_path: Path, labels: np.ndarray, task: TaskKind
) -> None:
    dataset = load_arrays(write_arrays(tmp_path, x=X, y=labels), Seed(0), task=task)
    assert (dataset.task.kind, dataset.task.outputs) == ("regression", 1)
    both = torch.cat((dataset.train.loss_labels, dataset.test.loss_labels)).flatten()
    assert sorted(both.tolist()) == pytest.approx(sorted(labels.tolist()))


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


def test_a_test_part_may_be_given(tmp_path: Path) -> None:
    path = write_arrays(
        tmp_path,
        x_train=np.array([[1.0], [3.0], [2.0]]),
        y_train=np.array(["dog", "cat", "dog"]),
        times_train=np.array(["2004-08-02", "2003-01-01", "2005-01-01"]),
        records_train=np.array(["a", "b", "a"]),
        x_test=np.array([[2.0], [2.0 + 6**0.5]]),
        y_test=np.array(["cat", "dog"]),
    )
    dataset = load_arrays(path, Seed(0))
    assert dataset.times is not None
    assert dataset.times.tolist() == [1, 0, 2]
    assert dataset.records is not None
    assert dataset.records.tolist() == [0, 1, 0]
    assert dataset.users is None
    # It is scaled as the training part: mean 2, deviation (2/3)^(1/2).
    assert dataset.train.inputs.flatten().tolist() == pytest.approx([-(1.5**0.5), 1.5**0.5, 0])
    assert dataset.test.inputs.flatten().tolist() == pytest.approx([0.0, 3.0])
    assert dataset.task.class_names == ("cat", "dog")
    assert dataset.train.labels.tolist() == [1, 0, 1]
    assert dataset.test.labels.tolist() == [0, 1]
    named = write_arrays(tmp_path, x=X, y=Y, class_names=np.array(["no", "yes"]))
    assert load_arrays(named, Seed(0)).task.class_names == ("no", "yes")


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
        ({"x": X, "y": Y[:, None, None]}, "must be a label per example"),
        ({"x": X, "y": np.full(20, np.nan)}, "without NaN"),
        ({"x": X, "y": WORDS.reshape(10, 2).repeat(2, 0)}, "names in 2 columns"),
        ({"x_train": X, "y_train": Y / 1, "x_test": X, "y_test": Y / 2}, "0 and 1 alone"),
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


@pytest.mark.parametrize(
    ("labels", "names", "note"),
    [
        ([2, 4, 7], ("2", "4", "7"), "No label is 0: the classes are 2, 4, 7"),
        ([0, 1, 3], ("0", "1", "2", "3"), "No example has the label '2'."),
    ],
)
def test_tells_of_labels_that_do_not_occur(
    tmp_path: Path, labels: list[int], names: tuple[str, ...], note: str
) -> None:
    path = write_arrays(tmp_path, x=np.ones((30, 2)), y=np.array(labels * 10))
    dataset = load_arrays(path, Seed(0))
    assert dataset.task.class_names == names
    assert dataset.train.labels.bincount().nonzero().flatten().tolist() == [
        names.index(str(one)) for one in labels
    ]
    assert dataset.reading.notes[0].startswith(note)


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


PATH = Path("a.npz")


def test_users_times_and_records_of_a_file_are_numbered(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "a.npz",
        user=np.array([70, 30, 70]),
        times=np.array(["2004-08-02", "2003-01-01", "2004-08-02"], dtype="datetime64[D]"),
        records=np.array([9, 9, 4]),
    )
    path = tmp_path / "a.npz"
    provenance = read_provenance(path, "", ArrayFile(path), 3)
    assert provenance.users is not None
    assert provenance.users.tolist() == [1, 0, 1]
    assert provenance.user_names == ("30", "70")
    assert provenance.times is not None
    assert provenance.times.tolist() == [1, 0, 1]
    assert provenance.records is not None
    assert provenance.records.tolist() == [1, 1, 0]


def test_refuses_a_date_out_of_range(tmp_path: Path) -> None:
    path = tmp_path / "own.npz"
    np.savez(path, times=np.array([2**60, 1], dtype="datetime64[Y]"))
    with pytest.raises(DataError, match="has a date out of range: use numbers"):
        read_provenance(path, "", ArrayFile(path), 2)


@given(st.lists(st.integers(0, 20), min_size=30, max_size=60), st.integers(0, 5))
def test_records_are_held_out_whole(records: list[int], seed: int) -> None:
    numbers = torch.from_numpy(np.unique(records, return_inverse=True)[1])
    record_count = int(numbers.max()) + 1
    if record_count < 3:
        return
    held_out = Provenance(records=numbers).hold_out_fifth(numbers % 2, Seed(seed), PATH)
    test_records, train_records = (
        set(numbers[held_out].tolist()),
        set(numbers[~held_out].tolist()),
    )
    assert not test_records & train_records
    assert len(test_records) == round(record_count / 5)


def test_refuses_to_hold_out_of_two_records() -> None:
    records = torch.arange(100) % 2
    with pytest.raises(DataError, match="2 examples"):
        Provenance(records=records).hold_out_fifth(records, Seed(0), PATH)
