"""What every data source promises, found by walking the folder.

Those that need files run where OVERHEARD_DATA names a folder that has them.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

import overheard.data.datasets
from overheard.core.discover import discover
from overheard.core.errors import DataError
from overheard.data.dataset import DataSource
from overheard.data.folder import data_folder

SOURCES = discover(overheard.data.datasets, DataSource)

WITHOUT_FOLDER = ("digits", "own")
"""Sources that never look into the data folder, and so can always be loaded."""


def made(name: str, scratch: Path) -> DataSource:
    """The source with its default settings; `own` has none and gets a small file."""
    if name != "own":
        return SOURCES[name]()
    inputs = np.random.default_rng(0).normal(size=(20, 3))
    np.savez(scratch / "own.npz", x=inputs, y=np.arange(20) % 2)
    return SOURCES[name](reference=str(scratch / "own.npz"))


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("name", SOURCES)
def test_examples_fit_the_task(name: str, tmp_path: Path) -> None:
    source, folder = made(name, tmp_path), data_folder(None)
    try:
        dataset = source.load(folder)
    except DataError as failure:
        absent = "put it at" in str(failure) or folder is None
        if name in WITHOUT_FOLDER or not absent:
            raise
        pytest.skip(str(failure))
    task = dataset.task
    for part in (dataset.train, dataset.test):
        assert len(part) > 0
        assert tuple(part.inputs.shape[1:]) == task.shape
        assert bool(part.inputs.isfinite().all())
        assert part.inputs.dtype == (torch.float32 if task.vocabulary is None else torch.int64)
    # Every label is there to be learned, and to be tested.
    assert int(dataset.train.counts(task.classes).min()) > 0
    assert int(dataset.test.counts(task.classes).min()) > 0
    if task.vocabulary is not None:
        assert int(dataset.train.inputs.max()) < task.vocabulary
    if len(task.shape) == 3:
        channels = dataset.train.inputs.double().transpose(0, 1).flatten(1)
        assert torch.allclose(channels.mean(1), torch.zeros(1).double(), atol=1e-5)
        assert torch.allclose(channels.std(1), torch.ones(1).double(), atol=1e-3)
    if dataset.users is not None:
        assert len(dataset.users) == len(dataset.train)
        assert int(dataset.users.bincount().min()) > 0


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("name", [name for name in SOURCES if name not in WITHOUT_FOLDER])
def test_absent_files_are_told_with_the_place_to_put_them(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"put it at {tmp_path}/\w+/\w+\.\w+"):
        SOURCES[name]().load(tmp_path)
    with pytest.raises(DataError, match="with --data DIR or OVERHEARD_DATA"):
        SOURCES[name]().load(None)


@pytest.mark.parametrize("source", SOURCES.values(), ids=str)
def test_every_source_says_where_its_data_come_from(source: type[DataSource]) -> None:
    assert source.source.strip()
