"""LEAF's JSON: users are clients, numbers are arrays, and texts a table."""

import json
from pathlib import Path
from typing import Any

import pytest

from overheard.core.errors import DataError
from overheard.data.datasets.custom import Own


def leaf(**user_data: tuple[list[Any], list[Any]]) -> dict[str, Any]:
    return {
        "users": list(user_data),
        "num_samples": [len(y) for _, y in user_data.values()],
        "user_data": {user: {"x": x, "y": y} for user, (x, y) in user_data.items()},
    }


def write(path: Path, document: object) -> str:
    path.write_text(json.dumps(document))
    return str(path)


NUMBERS = leaf(
    f01=([[0.0, 0.25, 0.5, number] for number in range(10)], [0, 1] * 5),
    f02=([[1.0, 0.5, 0.5, number] for number in range(10)], [0, 1] * 5),
)


def test_numbers_of_users_are_inputs_and_users(tmp_path: Path) -> None:
    file = write(tmp_path / "all_data_0.json", NUMBERS)
    dataset = Own(file, scale="as_written").load(None)
    assert dataset.task.shape == (4,)
    assert dataset.user_names == ("f01", "f02")
    # A fifth of each user's examples is held out.
    assert (len(dataset.train), len(dataset.test)) == (16, 4)
    assert dataset.users is not None
    assert dataset.train.inputs[dataset.users == 1, 0].tolist() == [1.0] * 8


def test_rows_of_numbers_become_images_of_the_stated_side(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", NUMBERS)
    dataset = Own(file, scale="as_written", image_side=2).load(None)
    assert dataset.task.shape == (1, 2, 2)
    # The first row of the image is the first two numbers.
    assert dataset.train.inputs[0, 0, 0].tolist() in ([0.0, 0.25], [1.0, 0.5])
    with pytest.raises(DataError, match=r"must have 9 numbers, or 27 with colours"):
        Own(file, image_side=3).load(None)


def test_all_files_of_a_folder_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "train"
    folder.mkdir()
    for number, user in enumerate(("f01", "f02")):
        one = NUMBERS["user_data"][user]
        write(folder / f"all_data_{number}.json", leaf(**{user: (one["x"], one["y"])}))
    whole = Own(write(tmp_path / "all.json", NUMBERS)).load(None)
    parts = Own(str(folder)).load(None)
    assert parts.user_names == whole.user_names
    assert parts.train.inputs.equal(whole.train.inputs)


def test_texts_are_a_table_with_users(tmp_path: Path) -> None:
    texts = [f"call me ishmael {number % 3}" for number in range(10)]
    file = write(
        tmp_path / "a.json", leaf(ANNE=(texts, ["a", "b"] * 5), BOB=(texts, ["a", "b"] * 5))
    )
    dataset = Own(file, vocabulary=50, tokens=4).load(None)
    assert dataset.user_names == ("ANNE", "BOB")
    assert dataset.task.class_names == ("a", "b")
    # Padding, words that are not known, and the three in nearly every text.
    assert dataset.task.vocabulary == 5


def test_of_several_texts_one_is_named(tmp_path: Path) -> None:
    # As Sent140 has them: id, day, query, author, text.
    rows = [[str(number), "Mon", "NO_QUERY", "me", f"so sad {number}"] for number in range(10)]
    file = write(tmp_path / "a.json", leaf(me=(rows, [0, 1] * 5), you=(rows, [0, 1] * 5)))
    with pytest.raises(DataError, match=r"several values, x0, x1, x2, x3, x4.*--text x4"):
        Own(file).load(None)
    assert Own(file, text="x4", tokens=3).load(None).task.shape == (3,)


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ([1, 2], "has no user_data"),
        ({"user_data": {"a": {"x": [[1.0]], "y": []}}}, "lists x and y of one length"),
        ({"users": ["b"], "user_data": {"a": {"x": [], "y": []}}}, "users and the keys"),
        (
            {"users": ["a"], "num_samples": [7], "user_data": {"a": {"x": [[1.0]], "y": [0]}}},
            "num_samples of user 'a' is '7', but there are 1",
        ),
        (leaf(a=([[1.0], [1.0, 2.0]], [0, 1])), "rows of equally many numbers"),
        (leaf(a=([[1.0]], [0]), b=([[1.0, 2.0]], [1])), "users differ in length"),
        (leaf(a=(["x.jpg"], [{"target": 1}])), "labels names or numbers"),
        (leaf(a=([[["to", "be"]]], [0])), "save arrays in an .npz"),
        (leaf(), "has no example"),
        (leaf(**{"n" * 101: ([[1.0]], [0])}), "'users' is not a valid name"),
        (leaf(a=([[1.0], [1.0]], ["l" * 101, "b"])), "'y' is not a valid name"),
        (leaf(a=([["\ud800", "b"]], [0])), "a text is no Unicode"),
        (leaf(a=([["w"] * 20_001], [0])), "up to 20000 texts"),
        ({"users": [["a"]], "user_data": {"a": {"x": [], "y": []}}}, "users and the keys"),
    ],
)
def test_says_what_is_wrong_with_another_form(
    tmp_path: Path, document: object, told: str
) -> None:
    with pytest.raises(DataError, match=told):
        Own(write(tmp_path / "a.json", document)).load(None)


def test_a_tokenizer_needs_texts(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", NUMBERS)
    with pytest.raises(DataError, match="numbers, and no texts that a tokenizer takes"):
        Own(file, text="x", tokenizer="builtins:len", token_ids=9).load(None)
