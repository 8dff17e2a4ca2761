import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from overheard.core.errors import DataError, PlanError
from overheard.data.datasets import cifar10
from overheard.data.datasets.cifar10 import Cifar10


def archive(path: Path, records: np.ndarray) -> None:
    """Write an archive as published, with the same records in each of its files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as files:
        for batch in (*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"):
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{batch}.bin")
            member.size = records.nbytes
            files.addfile(member, io.BytesIO(records.tobytes()))


def records(label: int) -> np.ndarray:
    """Return two images whose red, green and blue pixels are 10, 20, 30 and 50, 40, 90."""
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
def test_refuses_damaged_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cifar10" / "cifar-10-binary.tar.gz"
    archive(path, records(3))
    with pytest.raises(DataError, match="has too few images"):
        Cifar10().load(tmp_path)
    monkeypatch.setattr(cifar10, "BATCH", 2)
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(DataError, match=r"cifar-10-binary\.tar\.gz"):
        Cifar10().load(tmp_path)
    archive(path, records(10))
    with pytest.raises(DataError, match="between 0 and 9"):
        Cifar10().load(tmp_path)


def write_images(folder: Path) -> None:
    """Write four grey images of cats (3), frogs (6) and an airplane (0), levels 0 to 150."""
    levels, labels = np.array([0, 50, 100, 150], np.uint8), np.array([3, 6, 0, 3], np.int64)
    pixels = np.broadcast_to(levels[:, None, None, None], (4, 32, 32, 3))
    place = folder / "cifar10_subset" / "cifar10_subset.npz"
    place.parent.mkdir()
    np.savez(place, x_train=pixels, y_train=labels, x_test=pixels[1:], y_test=labels[1:])


def test_selected_classes_are_numbered_in_the_given_order(tmp_path: Path) -> None:
    write_images(tmp_path)
    whole, selection = Cifar10().load(tmp_path), Cifar10(only=("frog", "cat")).load(tmp_path)
    assert selection.task.class_names == ("frog", "cat")
    assert selection.train.labels.tolist() == [1, 0, 1]
    assert selection.test.labels.tolist() == [0, 1]
    # The airplane is left out, but pixels are still standardised by all images.
    assert selection.train.inputs.equal(whole.train.inputs[[0, 1, 3]])


def test_refuses_unknown_classes_and_a_wrong_shrink() -> None:
    with pytest.raises(
        PlanError, match="unknown classes lorry: take some of airplane, automobile"
    ):
        Cifar10(only=("cat", "lorry"))
    for only in (("cat",), ("cat", "dog", "cat")):
        with pytest.raises(PlanError, match=f"names {', '.join(only)}: name two classes"):
            Cifar10(only=only)
    for shrink in (3, 0, -2, 64):
        with pytest.raises(ValueError, match=f"must be 1, 2, 4, 8, 16 or 32, got {shrink}"):
            Cifar10(**{"shrink": shrink})
