import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from overheard.core.errors import DataError
from overheard.data.datasets import cifar10
from overheard.data.datasets.cifar10 import Cifar10


def archive(path: Path, records: np.ndarray) -> None:
    """The published archive with the same records in each of its files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as files:
        for batch in (*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"):
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{batch}.bin")
            member.size = records.nbytes
            files.addfile(member, io.BytesIO(records.tobytes()))


def records(label: int) -> np.ndarray:
    """Two images whose red, green and blue pixels are 10, 20, 30 and 50, 40, 90."""
    one = [label, *[10] * 1024, *[20] * 1024, *[30] * 1024]
    two = [0, *[50] * 1024, *[40] * 1024, *[90] * 1024]
    return np.array([one, two], np.uint8)


@pytest.mark.usefixtures("offline")
def test_the_published_archive_is_read_colour_by_colour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cifar10, "BATCH", 2)
    archive(tmp_path / "cifar10" / "cifar-10-binary.tar.gz", records(3))
    dataset = Cifar10().load(tmp_path)
    assert dataset.train.inputs.shape == (10, 3, 32, 32)
    assert dataset.test.labels.tolist() == [3, 0]
    # Each channel takes two levels equally often, the lower first: -1 and 1.
    levels = dataset.test.inputs[:, :, 5, 7].flatten().tolist()
    assert levels == pytest.approx([-1.0] * 3 + [1.0] * 3)


@pytest.mark.usefixtures("offline")
def test_damaged_archives_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cifar10" / "cifar-10-binary.tar.gz"
    archive(path, records(3))
    with pytest.raises(DataError, match="lacks images"):
        Cifar10().load(tmp_path)
    monkeypatch.setattr(cifar10, "BATCH", 2)
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(DataError, match=r"cifar-10-binary\.tar\.gz"):
        Cifar10().load(tmp_path)
    archive(path, records(10))
    with pytest.raises(DataError, match="between 0 and 9"):
        Cifar10().load(tmp_path)
