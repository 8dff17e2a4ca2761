"""Checks of every data source in the package.

Sources that need files are tested if OVERHEARD_DATA names a folder that has them.
"""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from overheard.core.errors import DataError
from overheard.data.dataset import Dataset, DataSource
from overheard.data.datasets.adult import Adult
from overheard.data.datasets.blogs import Blogs
from overheard.data.datasets.wisdm import Wisdm
from overheard.data.reading.folder import data_folder
from overheard.plans.registries import DATASETS
from overheard.testing.dataset import DATASET_CHECKS, check_dataset
from overheard.testing.require import require_part

SOURCES = {name: one for name, one in DATASETS.plugins().items() if name != "no_examples"}
"""All sources that have examples."""

WITHOUT_FOLDER = ("digits", "own")
"""Sources that do not use the data folder, and so can always be loaded."""


VARIANTS: Mapping[str, DataSource] = MappingProxyType(
    {
        "blogs_next_word": Blogs(task="next_word"),
        "adult_hours": Adult(task="hours_per_week"),
        "wisdm_acceleration": Wisdm(task="acceleration"),
        "wisdm_movements": Wisdm(task="movements"),
        "wisdm_x": Wisdm(axes="x"),
        "wisdm_yz": Wisdm(axes="yz"),
    }
)
"""Settings under which a source returns other fields than by default."""


def make_source(name: str, scratch: Path) -> DataSource:
    """Return the source with default settings; `own` has none and gets a small file."""
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
    """Return a function that loads a source once, and skips it if its files are missing."""

    @cache
    def load(name: str) -> Dataset | DataError:
        folder = data_folder(None)
        try:
            return make_source(name, tmp_path_factory.mktemp(name)).load(folder)
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


FOR_EACH_SOURCE = pytest.mark.parametrize("name", [*SOURCES, *VARIANTS])


@FOR_EACH_SOURCE
@pytest.mark.parametrize("check", DATASET_CHECKS)
@pytest.mark.usefixtures("offline")
def test_every_dataset(
    name: str, check: Callable[[Dataset], None], loaded: Callable[[str], Dataset]
) -> None:
    check(loaded(name))


@pytest.mark.parametrize("name", [*SOURCES, *VARIANTS])
def test_every_source_is_a_value_and_names_its_origin(name: str, tmp_path: Path) -> None:
    require_part(make_source(name, tmp_path))


def test_the_check_of_a_whole_source_passes() -> None:
    check_dataset(SOURCES["digits"]())


@pytest.mark.usefixtures("offline")
def test_class_names_of_blogs_contain_no_real_word(loaded: Callable[[str], Dataset]) -> None:
    names = loaded("blogs_next_word").task.class_names
    assert names == tuple(f"word {rank}" for rank in range(1, len(names) + 1))


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("name", [name for name in SOURCES if name not in WITHOUT_FOLDER])
def test_missing_files_are_reported_with_where_to_put_them(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"put it at {tmp_path}/\w+/\w+\.\w+"):
        SOURCES[name]().load(tmp_path)
    with pytest.raises(DataError, match="with --data DIR or OVERHEARD_DATA"):
        SOURCES[name]().load(None)
