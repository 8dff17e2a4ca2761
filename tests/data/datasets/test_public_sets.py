"""Public tables and images."""

import gzip
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from overheard.core.errors import DataError, PlanError
from overheard.data.content_hash import content_hashes
from overheard.data.datasets import cifar10
from overheard.data.datasets.adult import COLUMNS, Adult
from overheard.data.datasets.cifar10 import Cifar10
from overheard.data.datasets.digits import Digits

ROW = "39, {work}, 77516, Bachelors, 13, Never, Clerk, Single, White, {sex}, 0, 0, 40, {land}, "


TRAIN = (
    ROW.format(work="State-gov", sex="Male", land="Cuba") + "<=50K\n",
    ROW.format(work="?", sex="Female", land="Peru") + ">50K\n",
)


TEST = (
    "|1x3 Cross validator\n",
    ROW.format(work="Private", sex="Male", land="Peru") + ">50K.\n",
)


def write_published_files(folder: Path, train: str, test: str) -> None:
    (folder / "adult").mkdir(parents=True)
    (folder / "adult" / "adult.data").write_text(train)
    (folder / "adult" / "adult.test").write_text(test)


@pytest.mark.usefixtures("offline")
def test_reads_the_files_of_uci(tmp_path: Path) -> None:
    write_published_files(tmp_path, "".join(TRAIN) + "\n", "".join(TEST))
    dataset = Adult().load(tmp_path)
    assert dataset.train.labels.tolist() == [0, 1]
    assert dataset.test.labels.tolist() == [1]
    # 6 columns of numbers, 2 categories each of work (? and State-gov), sex and land, and 1
    # each of education, marital status, occupation, relationship and race.
    assert dataset.task.shape == (6 + 2 * 3 + 5,)
    # Columns: age, work: ?, work: State-gov, ... "Private" is in neither.
    assert dataset.train.inputs[:, 1:3].tolist() == [[0, 1], [1, 0]]
    assert dataset.test.inputs[:, 1:3].tolist() == [[0, 0]]


@pytest.mark.usefixtures("offline")
def test_packed_tables_and_the_files_of_uci_give_the_same(tmp_path: Path) -> None:
    write_published_files(tmp_path / "uci", "".join(TRAIN), "".join(TEST))
    packed = tmp_path / "packed" / "adult"
    packed.mkdir(parents=True)
    header = ",".join((*COLUMNS, "income")) + "\n"
    for name, lines in (("train", TRAIN), ("test", TEST[1:])):
        text = header + "".join(lines).replace(", ", ",").replace(".\n", "\n")
        (packed / f"adult_{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    from_uci, from_tables = Adult().load(tmp_path / "uci"), Adult().load(tmp_path / "packed")
    assert from_uci.train.inputs.equal(from_tables.train.inputs)
    assert from_uci.test.inputs.equal(from_tables.test.inputs)


@pytest.mark.usefixtures("offline")
def test_refuses_damaged_files(tmp_path: Path) -> None:
    write_published_files(tmp_path, TRAIN[0].replace("<=50K", "rich"), "".join(TEST))
    with pytest.raises(DataError, match=r"adult\.data: column 'income' must be"):
        Adult().load(tmp_path)
    (tmp_path / "adult" / "adult.data").write_text("".join(TRAIN))
    (tmp_path / "adult" / "adult.test").write_text(TEST[0] + TEST[1].replace("39", "old"))
    with pytest.raises(DataError, match="'age' has strings among its numbers"):
        Adult().load(tmp_path)


@pytest.mark.usefixtures("offline")
def test_hours_are_predicted_from_the_income_too(tmp_path: Path) -> None:
    train = "".join(TRAIN).replace("0, 40, Cuba", "0, 20, Cuba")
    write_published_files(tmp_path, train, "".join(TEST))
    income, hours = Adult().load(tmp_path), Adult(task="hours_per_week").load(tmp_path)
    # Hours of 20 and 40 have mean 30 and deviation 10.
    assert hours.train.loss_labels.tolist() == [[-1.0], [1.0]]
    assert hours.test.loss_labels.tolist() == [[1.0]]
    assert hours.task.kind == "regression"
    assert hours.task.shape == income.task.shape  # the income takes the place of the hours


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


def test_no_image_is_in_both_parts() -> None:
    dataset = Digits().load(None)
    hashes = [content_hashes(part.inputs) for part in (dataset.train, dataset.test)]
    assert not torch.isin(hashes[0], hashes[1]).any()


def test_the_images_are_those_that_scikit_learn_loads() -> None:
    dataset, loaded = Digits().load(None), load_digits()
    images = torch.from_numpy(loaded.images / 16)
    inputs = torch.cat((dataset.train.inputs, dataset.test.inputs))
    labels = torch.cat((dataset.train.labels, dataset.test.labels))
    # Standardizing changes no order of grey values.
    assert torch.equal(labels.bincount(), torch.from_numpy(loaded.target).bincount())
    found = (labels.tolist(), inputs.flatten(1).argsort(dim=1, stable=True).tolist())
    expected = (loaded.target.tolist(), images.flatten(1).argsort(dim=1, stable=True).tolist())
    assert sorted(zip(*found, strict=True)) == sorted(zip(*expected, strict=True))


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("hostile", ["many files", "long file", "negative size"])
def test_an_archive_with_other_files_is_not_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hostile: str
) -> None:
    monkeypatch.setattr(cifar10, "BATCH", 2)
    size = {"many files": 0, "long file": 2**20, "negative size": 0}[hostile]
    member = tarfile.TarInfo("x")
    member.size = size
    header = bytearray(member.tobuf())
    if hostile == "negative size":
        header[124:135] = b"-0000000001"
    count = 101 if hostile == "many files" else 1
    path = tmp_path / "cifar10" / "cifar-10-binary.tar.gz"
    path.parent.mkdir()
    path.write_bytes(gzip.compress((bytes(header) + bytes(size)) * count))
    with pytest.raises(DataError, match="cannot be read as cifar-10"):
        Cifar10().load(tmp_path)
