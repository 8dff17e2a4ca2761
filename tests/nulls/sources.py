"""Data whose users are shuffled over the rows, so that nothing in a row tells its user."""

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from overheard.core.errors import DataError
from overheard.data.datasets.mnist import FashionMnist
from overheard.data.datasets.wisdm import Wisdm
from overheard.data.reading.folder import data_folder, require_file

LABELS = ("ash", "birch", "cedar", "date")
USERS = 30
ROWS_OF_USER = 60
ROWS = USERS * ROWS_OF_USER
COLUMNS = 6
SIDE = 8
WORDS = 40
WORDS_OF_TEXT = 8

HANDS = ("left", "right")
ATTRIBUTE = "hand"


@dataclass(frozen=True)
class Source:
    """A source of data for audits in which nothing can leak.

    Args:
        name: its name in the table.
        classes: the number of labels.
        model: the table of the model in a plan.
        write: writes the data into a folder, and returns the table of the source in a plan.
        has_users: whether examples have users.
        are_users_shuffled: whether nothing in a row tells its user.
        has_attributes: whether users have an attribute.
        has_texts: whether the words of clients can be asked for.
        loss: the loss in a plan; that of numbers to predict stands for a task without classes.
        why_missing: why there are no data; "" = there are.

    """

    name: str
    classes: int
    model: Mapping[str, Any]
    write: Callable[[Path, int], Mapping[str, Any]]
    has_users: bool = True
    are_users_shuffled: bool = True
    has_attributes: bool = True
    has_texts: bool = False
    loss: str = "cross_entropy"
    why_missing: str = ""


def _write_table(folder: Path, number: int) -> Mapping[str, Any]:
    """Write numbers whose labels lie apart; users, hands and times are random."""
    generator = np.random.default_rng(number)
    labels, users, hands = _draw_rows(generator)
    centres = np.random.default_rng(7).normal(size=(len(LABELS), COLUMNS))
    inputs = centres[labels] + generator.normal(size=(ROWS, COLUMNS))
    names = [f"x{column}" for column in range(COLUMNS)]
    rows = [[f"{value:.3f}" for value in row] for row in inputs]
    return _write_csv(folder / "own.csv", names, rows, labels, users, hands)


def _write_numbers(folder: Path, number: int) -> Mapping[str, Any]:
    """Write a number to predict for each row, from its other numbers."""
    generator = np.random.default_rng(number)
    _, users, hands = _draw_rows(generator)
    inputs = generator.normal(size=(ROWS, COLUMNS))
    levels = inputs.sum(1) + generator.normal(size=ROWS)
    names = [*(f"x{column}" for column in range(COLUMNS)), "level"]
    cells = np.column_stack([inputs, levels])
    rows = [[f"{value:.3f}" for value in row] for row in cells]
    no_labels = np.zeros(ROWS, np.int64)
    table = _write_csv(folder / "own.csv", names, rows, no_labels, users, hands)
    return {**table, "task": "regression", "label": "level", "left_out": ["label"]}


def _write_texts(folder: Path, number: int) -> Mapping[str, Any]:
    """Write texts with frequent words of their label."""
    generator = np.random.default_rng(number)
    labels, users, hands = _draw_rows(generator)
    words = generator.integers(WORDS // 2, size=(ROWS, WORDS_OF_TEXT)) + 5 * labels[:, None]
    texts = [[" ".join(f"word{word}" for word in row)] for row in words.tolist()]
    table = _write_csv(folder / "own.csv", ["text"], texts, labels, users, hands)
    return {**table, "text": "text", "tokens": WORDS_OF_TEXT}


def _write_images(folder: Path, number: int) -> Mapping[str, Any]:
    """Write grey images with a pattern for each label."""
    generator = np.random.default_rng(number)
    labels, users, _ = _draw_rows(generator)
    patterns = np.random.default_rng(7).random(size=(len(LABELS), SIDE, SIDE))
    images = 0.4 * patterns[labels] + 0.6 * generator.random(size=(ROWS, SIDE, SIDE))
    path = folder / "own.npz"
    np.savez(path, x=(255 * images).astype(np.uint8), y=labels, user=users)
    return {"kind": "own", "reference": str(path)}


def _draw_rows(
    generator: np.random.Generator,
) -> tuple[Int[np.ndarray, " rows"], Int[np.ndarray, " rows"], Int[np.ndarray, " users"]]:
    """Draw the label and the user of each row, and the hand of each user."""
    users = generator.permutation(np.repeat(np.arange(USERS), ROWS_OF_USER))
    return generator.integers(len(LABELS), size=ROWS), users, generator.integers(2, size=USERS)


def _write_csv(
    path: Path,
    names: list[str],
    cells: list[list[str]],
    labels: Int[np.ndarray, " rows"],
    users: Int[np.ndarray, " rows"],
    hands: Int[np.ndarray, " users"],
) -> Mapping[str, Any]:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "label", "person", ATTRIBUTE, "when"])
        for row, (own, label, user) in enumerate(
            zip(cells, labels.tolist(), users.tolist(), strict=True)
        ):
            writer.writerow([*own, LABELS[label], f"person{user}", HANDS[hands[user]], row])
    columns = {"user": "person", "time": "when", "attributes": [ATTRIBUTE]}
    return {"kind": "own", "reference": str(path), **columns}


def _why_missing(source: str, *files: str) -> str:
    try:
        require_file(data_folder(None), files, source)
    except DataError as error:
        return str(error)
    return ""


LOSS_OF_NUMBERS = "squared_error"

MLP: Mapping[str, Any] = {"kind": "mlp", "hidden": [8]}
TEXT_BAG: Mapping[str, Any] = {"kind": "text_bag", "dim": 4, "hidden": 4}


def sources() -> tuple[Source, ...]:
    """Return the sources: two built-in sets, and a file of one's own of each kind."""
    return (
        Source("digits", 10, MLP, lambda *_: {"kind": "digits"}, has_users=False),
        Source(
            "wisdm",
            6,
            MLP,
            lambda *_: {"kind": "wisdm"},
            are_users_shuffled=False,
            has_attributes=False,
            why_missing=_why_missing(Wisdm.source, "wisdm/wisdm_windows.csv.gz"),
        ),
        Source("own table", len(LABELS), MLP, _write_table),
        # Arrays have no attributes.
        Source("own images", len(LABELS), MLP, _write_images, has_attributes=False),
        Source("own texts", len(LABELS), TEXT_BAG, _write_texts, has_texts=True),
        Source("own numbers", 1, MLP, _write_numbers, loss=LOSS_OF_NUMBERS),
    )


def mnist() -> Source:
    """Return MNIST, which has another set of the same shape and number of classes."""
    return Source(
        "mnist",
        10,
        MLP,
        lambda *_: {"kind": "mnist", "shrink": 2},
        has_users=False,
        why_missing=_why_missing(
            FashionMnist.source,
            "fashion_mnist/fashion_mnist.npz",
            "fashion_mnist/train-images-idx3-ubyte.gz",
        ),
    )
