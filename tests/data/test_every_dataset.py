"""What every data source promises, found by walking the folder.

Those that need files run where OVERHEARD_DATA names a folder that has them.
"""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
import torch

import overheard.data.datasets
from overheard.core.discover import discover
from overheard.core.errors import DataError
from overheard.data.contents import content_keys
from overheard.data.dataset import Dataset, DataSource
from overheard.data.datasets.blogs import Blogs
from overheard.data.datasets.wisdm import Wisdm
from overheard.data.reading.folder import data_folder

SOURCES = discover(overheard.data.datasets, DataSource)

WITHOUT_FOLDER = ("digits", "own")
"""Sources that never look into the data folder, and so can always be loaded."""


VARIANTS: Mapping[str, DataSource] = MappingProxyType(
    {
        "blogs_next_word": Blogs(task="next_word"),
        "wisdm_x": Wisdm(axes="x"),
        "wisdm_yz": Wisdm(axes="yz"),
    }
)
"""Settings under which a source gives other fields than by default."""

MANY = 1000
"""Labels of which some may be rare enough to be missing in a part."""


def made(name: str, scratch: Path) -> DataSource:
    """The source with its default settings; `own` has none and gets a small file."""
    if name in VARIANTS:
        return VARIANTS[name]
    if name != "own":
        return SOURCES[name]()
    inputs = np.random.default_rng(0).normal(size=(20, 3))
    place = np.arange(20)
    np.savez(scratch / "own.npz", x=inputs, y=place % 2, user=place % 3, times=-place)
    return SOURCES[name](reference=str(scratch / "own.npz"))


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Dataset]:
    """Loads a source once for all tests; skips those whose files are absent."""

    @cache
    def load(name: str) -> Dataset | DataError:
        folder = data_folder(None)
        try:
            return made(name, tmp_path_factory.mktemp(name)).load(folder)
        except DataError as failure:
            absent = "put it at" in str(failure) or folder is None
            if name in WITHOUT_FOLDER or not absent:
                raise
            return failure

    def load_or_skip(name: str) -> Dataset:
        dataset = load(name)
        if isinstance(dataset, DataError):
            pytest.skip(str(dataset))
        return dataset

    return load_or_skip


EACH = pytest.mark.parametrize("name", [*SOURCES, *VARIANTS])


@EACH
@pytest.mark.usefixtures("offline")
def test_examples_fit_the_task(name: str, loaded: Callable[[str], Dataset]) -> None:
    dataset = loaded(name)
    task = dataset.task
    for part in (dataset.train, dataset.test):
        assert len(part) > 0
        assert tuple(part.inputs.shape[1:]) == task.shape
        assert bool(part.inputs.isfinite().all())
        assert part.inputs.dtype == (torch.float32 if task.vocabulary is None else torch.int64)
    if task.classes < MANY:
        # Every label is there to be learned, and to be tested.
        assert int(dataset.train.counts(task.classes).min()) > 0
        assert int(dataset.test.counts(task.classes).min()) > 0
    if task.vocabulary is not None:
        assert int(dataset.train.inputs.max()) < task.vocabulary
    if len(task.shape) == 3:
        channels = dataset.train.inputs.double().transpose(0, 1).flatten(1)
        assert torch.allclose(channels.mean(1), torch.zeros(1).double(), atol=1e-5)
        assert torch.allclose(channels.std(1), torch.ones(1).double(), atol=1e-3)


@EACH
@pytest.mark.usefixtures("offline")
def test_users_and_what_is_told_of_them_are_of_one_number(
    name: str, loaded: Callable[[str], Dataset]
) -> None:
    dataset = loaded(name)
    if dataset.users is None:
        # Attributes are of users.
        assert not dataset.attributes
        return
    assert len(dataset.users) == len(dataset.train)
    assert int(dataset.users.bincount().min()) > 0
    assert len(dataset.user_names) == len(dataset.users.unique())
    for attribute, values in dataset.attributes.items():
        assert attribute
        assert len(values) == len(dataset.user_names)
        assert 2 <= len(set(values)) < len(values)
        assert all(values)


@EACH
@pytest.mark.usefixtures("offline")
def test_times_order_the_examples_of_each_user(
    name: str, loaded: Callable[[str], Dataset]
) -> None:
    dataset = loaded(name)
    if dataset.times is None:
        return
    assert len(dataset.times) == len(dataset.train)
    users = torch.zeros_like(dataset.times) if dataset.users is None else dataset.users
    records = torch.arange(len(users)) if dataset.records is None else dataset.records
    # What is cut out of one record is of one user and one time, and no two records of a user
    # are of one time.
    told = torch.stack([records, users, dataset.times], dim=1).unique(dim=0)
    assert len(told) == len(records.unique())
    assert len(told[:, 1:].unique(dim=0)) == len(told)


@EACH
@pytest.mark.usefixtures("offline")
def test_each_record_has_an_embedding_that_the_inputs_do_not_hold(
    name: str, loaded: Callable[[str], Dataset]
) -> None:
    dataset = loaded(name)
    if dataset.embeddings is None:
        return
    assert bool(dataset.embeddings.isfinite().all())
    if dataset.records is None:
        assert len(dataset.embeddings) == len(dataset.train)
    else:
        assert int(dataset.records.max()) < len(dataset.embeddings)
    if dataset.train.inputs.is_floating_point():
        columns = dataset.train.inputs.flatten(1).T
        for column in dataset.embeddings.T:
            assert not bool((columns == column).all(1).any())


@EACH
@pytest.mark.usefixtures("offline")
def test_the_background_shares_no_content_with_anyone(
    name: str, loaded: Callable[[str], Dataset]
) -> None:
    dataset = loaded(name)
    if dataset.background is None:
        return
    assert tuple(dataset.background.inputs.shape[1:]) == dataset.task.shape
    private = content_keys(torch.cat([dataset.train.inputs, dataset.test.inputs]))
    assert not bool(torch.isin(content_keys(dataset.background.inputs), private).any())


@pytest.mark.usefixtures("offline")
def test_a_class_of_blogs_is_never_called_by_a_word(loaded: Callable[[str], Dataset]) -> None:
    names = loaded("blogs_next_word").task.class_names
    assert names == tuple(f"word {rank}" for rank in range(1, len(names) + 1))


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
