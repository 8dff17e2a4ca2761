"""Public texts with users."""

from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pytest
import torch

from overheard.core.errors import DataError, PlanError
from overheard.core.known_facts.token_words import TokenWords
from overheard.data.content_hash import content_hashes
from overheard.data.datasets.ag_news import AgNews
from overheard.data.datasets.blogs import Blogs
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


FILE = "blogs_100users_x300.parquet"


BACKGROUND = "blogs_background_200users_x60.parquet"


def posts(texts: list[str], bloggers: list[str], positions: list[int]) -> pd.DataFrame:
    """Return posts of bloggers; the last digit of a name gives gender and age group."""
    odd = [int(blogger[-1]) % 2 for blogger in bloggers]
    return pd.DataFrame(
        {
            "text": texts,
            "label": [2 * each for each in odd],
            "user": bloggers,
            "seq": positions,
            "date": [f"2004-08-{1 + position:02}" for position in positions],
            "gender": [("female", "male")[each] for each in odd],
        }
    )


SONG = "one two three four five six seven eight nine ten eleven twelve"


def two_blogs() -> pd.DataFrame:
    texts = [f"{SONG} number{n:02}" for n in range(10)]
    return posts(texts, ["u1"] * 5 + ["u2"] * 5, [4, 3, 2, 1, 0, 0, 1, 2, 3, 4])


def test_the_latest_posts_of_each_blogger_are_the_test_part(tmp_path: Path) -> None:
    two_blogs().to_parquet(tmp_path / FILE)
    dataset = Blogs(tokens=2).load(tmp_path)
    assert dataset.user_names == ("u1", "u2")
    assert dataset.users is not None
    assert dataset.times is not None
    # The latest posts are row 0 of u1 and row 9 of u2.
    assert dataset.users.tolist() == [0] * 4 + [1] * 4
    assert dataset.times.tolist() == [3, 2, 1, 0, 0, 1, 2, 3]
    assert dataset.test.labels.tolist() == [2, 0]
    assert dataset.train.labels.tolist() == [2] * 4 + [0] * 4
    assert dict(dataset.attributes) == {"gender": ("male", "female")}
    assert dataset.embeddings is not None
    assert len(dataset.embeddings) == 8


def test_a_copy_of_a_blog_is_left_out(tmp_path: Path) -> None:
    texts_of_u0 = [f"word{n:02} again" for n in range(10)]
    # u1 repeats all of u0's posts but one; u2 happens to share one with u0.
    texts = [
        *texts_of_u0[:5],
        *texts_of_u0[:4],
        texts_of_u0[5],
        texts_of_u0[0],
        *texts_of_u0[6:],
    ]
    frame = posts(texts, ["u0"] * 5 + ["u1"] * 5 + ["u2"] * 5, [*range(5)] * 3)
    # u2 has another age group, so that two labels are left.
    frame.assign(label=[0] * 10 + [1] * 5).to_parquet(tmp_path / FILE)
    assert Blogs().load(tmp_path).user_names == ("u0", "u2")


def test_next_words_are_numbered_by_frequency(tmp_path: Path) -> None:
    texts = ["zz zz zz yy zz xx"] * 3 + ["zz yy zz yy xx xx", "zz zz qq zz zz zz"]
    posts(texts, ["u1"] * 5, [*range(5)]).to_parquet(tmp_path / FILE)
    dataset = Blogs(task="next_word", context=3, stride=2).load(tmp_path)
    # In training zz occurs 14 times, yy and xx 5 times each: by frequency, then by alphabet, zz
    # is token 2, xx 3 and yy 4.
    assert dataset.task.class_names == ("word 1", "word 2", "word 3")
    assert dataset.task.vocabulary == 5
    # Words are those of real people, so they are not named.
    assert dataset.token_words == TokenWords(5, 2, first_label=2)
    # Words 2 and 4 of each post, after two and after three words.
    assert dataset.train.inputs.tolist() == [[2, 2, 0], [2, 2, 4]] * 3 + [[2, 4, 0], [4, 2, 4]]
    assert dataset.train.labels.tolist() == [0, 0] * 3 + [0, 1]
    # The window with an unknown next word is left out, the one after it is not.
    assert dataset.test.inputs.tolist() == [[2, 1, 2]]
    assert dataset.test.labels.tolist() == [0]


def test_windows_have_the_record_user_and_time_of_their_post(tmp_path: Path) -> None:
    two_blogs().to_parquet(tmp_path / FILE)
    dataset = Blogs(task="next_word").load(tmp_path)
    assert dataset.users is not None
    assert dataset.times is not None
    # Words 4, 8 and 12 of 13 are labels; word 12 is in the vocabulary, as the post is in the
    # training part. Post 4 is the first one of u2.
    assert dataset.records is not None
    assert dataset.records.tolist() == [post for post in range(8) for _ in range(3)]
    assert dataset.users.tolist() == [0] * 12 + [1] * 12
    assert dataset.times[::3].tolist() == [3, 2, 1, 0, 0, 1, 2, 3]
    assert dict(dataset.attributes) == {
        "gender": ("male", "female"),
        "age_group": ("33 and over", "13-17"),
    }


@pytest.mark.parametrize("task", ["age_group", "next_word"])
def test_the_background_has_no_private_example(tmp_path: Path, task: str) -> None:
    two_blogs().to_parquet(tmp_path / FILE)
    others = [f"{SONG} number03", f"{SONG[::-1]} five six", "two three four five six seven"]
    posts(others, ["b1"] * 3, [0, 1, 2]).to_parquet(tmp_path / BACKGROUND)
    dataset = Blogs(task=task, vocabulary=12).load(tmp_path)  # type: ignore[arg-type]
    assert dataset.background is not None
    private = content_hashes(torch.cat([dataset.train.inputs, dataset.test.inputs]))
    assert not bool(torch.isin(content_hashes(dataset.background.inputs), private).any())
    if task == "age_group":
        # The first post equals one of u1 except for words outside the vocabulary.
        assert len(dataset.background) == 2
        assert dataset.background.labels.tolist() == [2, 2]
    else:
        # In the second post, words 4 and 8 are unknown, and word 12 is five, after twelve
        # unknown ones. In the third post, word 4 is six, after two three four five.
        assert len(dataset.background) == 2
    assert dataset.task.vocabulary == 14


def test_embeddings_do_not_depend_on_other_private_posts(tmp_path: Path) -> None:
    frame = two_blogs()
    frame.to_parquet(tmp_path / FILE)
    others = posts(["Some. Other: posts!", "and, more", "3 at last"], ["b1"] * 3, [0, 1, 2])
    others.to_parquet(tmp_path / BACKGROUND)
    before = Blogs().load(tmp_path).embeddings
    frame.loc[1, "text"] = "SOMETHING ELSE?!"
    frame.to_parquet(tmp_path / FILE)
    after = Blogs().load(tmp_path).embeddings
    assert before is not None
    assert after is not None
    assert not torch.allclose(before[0], after[0], atol=1e-3)
    assert torch.allclose(before[1:], after[1:], atol=1e-4)


def test_refuses_a_blogger_of_two_genders(tmp_path: Path) -> None:
    frame = two_blogs()
    frame.loc[0, "gender"] = "female"
    frame.to_parquet(tmp_path / FILE)
    with pytest.raises(DataError, match="user 'u1' has several values in column 'gender'"):
        Blogs().load(tmp_path)


def test_refuses_blogs_too_short_to_hold_out_a_post(tmp_path: Path) -> None:
    posts(["a post"] * 4, ["u1"] * 4, [*range(4)]).to_parquet(tmp_path / FILE)
    with pytest.raises(DataError, match="no blogger with 5 posts"):
        Blogs().load(tmp_path)


def test_refuses_a_stride_that_leaves_no_label() -> None:
    with pytest.raises(PlanError, match="use a smaller stride"):
        Blogs(task="next_word", tokens=10, stride=10)
    with pytest.raises(ValueError, match="vocabulary must be 1 or more, got 0"):
        Blogs(vocabulary=0)
    # Settings of the other task are not checked.
    assert Blogs(tokens=2).stride == 4
