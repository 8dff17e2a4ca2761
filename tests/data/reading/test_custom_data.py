from pathlib import Path

import numpy as np
import pytest

from overheard.core.errors import DataError
from overheard.data.reading.custom_data import load_custom_data

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
        ("data.xlsx", "is not a data reference"),
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
