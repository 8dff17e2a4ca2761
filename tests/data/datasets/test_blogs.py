"""Blogs, on small files in the format of the real ones."""

from pathlib import Path

import pandas as pd
import pytest
import torch

from overheard.core.errors import DataError, PlanError
from overheard.core.known_facts.token_words import TokenWords
from overheard.data.content_hash import content_hashes
from overheard.data.datasets.blogs import Blogs

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
