"""Sources with texts or users, on small files in the format of the real ones."""

from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pytest

from overheard.core.errors import DataError
from overheard.data.datasets.ag_news import AgNews
from overheard.data.datasets.ham10000 import Ham10000
from overheard.data.datasets.omniglot_writers import OmniglotWriters
from overheard.data.datasets.wisdm import COLUMNS, FEATURES, Wisdm


@pytest.mark.usefixtures("offline")
def test_published_news_have_labels_from_one(tmp_path: Path) -> None:
    folder = tmp_path / "ag_news"
    folder.mkdir()
    lines = '"3","Wall Street","stocks, up"\n"1","Peace","talks"\n'
    (folder / "train.csv").write_text(lines)
    (folder / "test.csv").write_text('"4","Street","robots"\n')
    dataset = AgNews(tokens=3).load(tmp_path)
    assert dataset.train.labels.tolist() == [2, 0]
    assert dataset.test.labels.tolist() == [3]
    # Words: peace 2, stocks 3, street 4, talks 5, up 6, wall 7.
    assert dataset.train.inputs.tolist() == [[7, 4, 3], [2, 5, 0]]
    assert dataset.test.inputs.tolist() == [[4, 1, 0]]
    assert dataset.task.vocabulary == 8


@pytest.mark.usefixtures("offline")
def test_refuses_news_of_an_unknown_section(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text('"5","A title","text"\n')
    (tmp_path / "test.csv").write_text('"1","A title","text"\n')
    with pytest.raises(DataError, match=r"train\.csv: column 'label'"):
        AgNews().load(tmp_path)


def wisdm_table(rows: int) -> pd.DataFrame:
    columns = {name: np.arange(rows, dtype=float) for name in COLUMNS}
    return pd.DataFrame({"user": [7] * rows, **columns, "label": np.arange(rows) % 6})


def test_missing_cells_become_the_training_mean(tmp_path: Path) -> None:
    table = wisdm_table(10)
    # Rows 2 and 6 are drawn for the test.
    table["XPEAK"] = [np.nan, 1, 90, 2, 3, 4, 90, 5, 6, 7]
    table.to_csv(tmp_path / "wisdm_windows.csv.gz", index=False)
    dataset = Wisdm().load(tmp_path)
    assert len(dataset.train) == 8
    assert dataset.user_names == ("7",)
    place = COLUMNS.index("XPEAK")
    # Known: 1..7, mean 4, deviation 2; row 0 counts as 4, row 1 is (1 - 4) / 2.
    assert dataset.train.inputs[:2, place].tolist() == [0.0, -1.5]


@pytest.mark.parametrize(("axes", "read", "unread"), [("x", "X", "YZ"), ("yz", "YZ", "X")])
def test_the_other_axes_are_the_embedding(
    tmp_path: Path, axes: Literal["x", "yz"], read: str, unread: str
) -> None:
    table = wisdm_table(10)
    for number, name in enumerate(COLUMNS):
        # Each column is one row high and 0 elsewhere; each axis has a row of its own.
        # Row 2 is drawn for the test.
        row = (0, 1, 3)["XYZ".index(name[0])] if name != "RESULTANT" else 4
        table[name] = [float(place == row) * (number + 1) for place in range(10)]
    table.to_csv(tmp_path / "wisdm_windows.csv.gz", index=False)
    dataset = Wisdm(axes=axes).load(tmp_path)
    assert dataset.embeddings is not None
    for values, axes_used in ((dataset.train.inputs, read), (dataset.embeddings, unread)):
        # The last feature of the Z axis is left out, as it is a copy.
        expected = [
            "XYZ".index(axis)
            for axis in axes_used
            for _ in FEATURES[: -1 if axis == "Z" else None]
        ]
        assert values.argmax(0).tolist() == expected
    whole = Wisdm().load(tmp_path)
    assert whole.task.shape == (len(COLUMNS),) == (3 * len(FEATURES) + 1,)
    assert whole.embeddings is None


def test_times_of_sensor_windows_are_rows_of_the_file(tmp_path: Path) -> None:
    table = pd.concat([wisdm_table(5), wisdm_table(5).assign(user=3)])
    table.to_csv(tmp_path / "wisdm_windows.csv.gz", index=False)
    dataset = Wisdm().load(tmp_path)
    assert dataset.times is not None
    # Drawn for the test are row 2, of user 7, and row 6, of user 3.
    assert dataset.times.tolist() == [0, 1, 3, 4, 5, 7, 8, 9]


def test_refuses_a_table_without_a_feature(tmp_path: Path) -> None:
    table = wisdm_table(10).drop(columns="RESULTANT")
    table.to_csv(tmp_path / "wisdm_windows.csv.gz", index=False)
    with pytest.raises(DataError, match="no column 'RESULTANT'"):
        Wisdm().load(tmp_path)


def test_a_fifth_of_each_drawers_images_is_the_test_part(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "omniglot_writers.npz",
        x=np.random.default_rng(0).integers(0, 256, (40, 28, 28), dtype=np.uint8),
        y=np.arange(40) % 3,
        user=np.arange(40) // 10,
        class_names=np.array(["a", "b", "c"]),
        user_names=np.array(["Greek/01", "Greek/02", "Latin/01", "Latin/02"]),
    )
    dataset = OmniglotWriters().load(tmp_path)
    assert dataset.users is not None
    assert dataset.users.bincount().tolist() == [8] * 4
    assert len(dataset.test) == 8
    assert dict(dataset.attributes) == {"alphabet": ("Greek", "Greek", "Latin", "Latin")}
    # The ten images of each user are consecutive in the file.
    assert dataset.times is not None
    assert (dataset.times // 10).equal(dataset.users)
    assert bool((dataset.times.diff() > 0).all())


def test_ham10000_reads_both_sizes(tmp_path: Path) -> None:
    labels = np.arange(7)
    for file, shape in (
        ("ham10000_28x28_rgb.npz", (7, 28, 28, 3)),
        ("ham10000_8x8_gray_full.npz", (7, 8, 8)),
    ):
        pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
        np.savez(tmp_path / file, x_train=pixels, y_train=labels, x_test=pixels, y_test=labels)
    assert Ham10000().load(tmp_path).task.shape == (3, 28, 28)
    assert Ham10000(side=8).load(tmp_path).task.shape == (1, 8, 8)


def test_movements_follow_from_the_activity(tmp_path: Path) -> None:
    wisdm_table(10).to_csv(tmp_path / "wisdm_windows.csv.gz", index=False)
    dataset = Wisdm(task="movements").load(tmp_path)
    assert dataset.task.kind == "multi_label"
    assert dataset.task.class_names == ("upright", "moving", "climbing stairs")
    # Row 0 is Downstairs, row 1 Jogging; row 2 is drawn for the test; row 3 is Standing.
    assert dataset.train.loss_labels[:3].tolist() == [[1, 1, 1], [1, 1, 0], [1, 0, 0]]


def test_the_mean_acceleration_is_predicted_from_the_other_columns(tmp_path: Path) -> None:
    wisdm_table(10).to_csv(tmp_path / "wisdm_windows.csv.gz", index=False)
    dataset = Wisdm(task="acceleration").load(tmp_path)
    assert dataset.task.kind == "regression"
    assert dataset.task.shape == (len(COLUMNS) - 1,)
    rows = dataset.train.loss_labels.double()
    assert float(rows.mean()) == pytest.approx(0, abs=1e-6)
    assert float(rows.std(correction=0)) == pytest.approx(1)
