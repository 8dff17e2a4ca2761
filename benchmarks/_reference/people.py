"""Twelve people with labels, a look and a hand of their own, as a data set and as tables."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from overheard.core.examples import Examples
from overheard.core.task import Task
from overheard.data.dataset import Dataset

USERS = tuple(f"person-{number}" for number in range(12))
LABELS = ("a", "b", "c", "d")
FEATURES = 5

ROWS = 80
"""Of each person, the last sixteen of which are the test."""

TESTED = 16
HANDS = ("left", "right")


def people() -> Dataset:
    """What a plan names by "module:function": with another modality and public examples."""
    draws = np.random.default_rng(20)
    inputs, labels, users = _rows(draws)
    tested = np.tile(np.arange(ROWS) >= ROWS - TESTED, len(USERS))
    looks = np.eye(len(USERS))[users] + draws.normal(scale=0.1, size=(len(users), len(USERS)))
    background = Examples(
        torch.from_numpy(draws.normal(size=(60, FEATURES)).astype(np.float32)),
        torch.from_numpy(draws.integers(len(LABELS), size=60)),
    )
    return Dataset(
        _examples(inputs[~tested], labels[~tested]),
        _examples(inputs[tested], labels[tested]),
        Task((FEATURES,), LABELS),
        users=torch.from_numpy(users[~tested]),
        user_names=USERS,
        times=torch.arange(int((~tested).sum())),
        embeddings=torch.from_numpy(looks[~tested].astype(np.float32)),
        attributes={"hand": tuple(HANDS[place % 2] for place in range(len(USERS)))},
        background=background,
    )


def write_people(folder: Path) -> None:
    """The same people as a table of either kind."""
    inputs, labels, users = _rows(np.random.default_rng(21))
    columns = {f"x{place}": inputs[:, place].round(6) for place in range(FEATURES)}
    table = pd.DataFrame(columns)
    table["label"] = np.array(LABELS)[labels]
    table["user"] = np.array(USERS)[users]
    table["hand"] = np.array(HANDS)[users % 2]
    table["colour"] = np.array(("red", "green", "blue"))[np.arange(len(users)) % 3]
    table["when"] = np.arange(len(users))
    table.to_csv(folder / "people.csv", index=False)
    table.to_parquet(folder / "people.parquet", index=False)


def write_texts(folder: Path) -> None:
    """What five people said, in three ratings, each of which has words of its own."""
    draws, rows = np.random.default_rng(22), []
    for person in range(5):
        for _ in range(80):
            rating = int(draws.choice(3, p=np.roll((0.6, 0.3, 0.1), person)))
            words = draws.integers(rating * 12, rating * 12 + 24, size=draws.integers(3, 9))
            said = " ".join((*(f"word{word}" for word in words), f"name{person}"))
            rows.append({"said": said, "label": str(rating), "user": USERS[person]})
    pd.DataFrame(rows).to_csv(folder / "texts.csv", index=False)


def write_pictures(folder: Path) -> None:
    """Pictures of 12 x 12 in colour of four kinds, and others of the same kinds."""
    draws = np.random.default_rng(23)
    kinds = draws.integers(0, 256, size=(len(LABELS), 12, 12, 3))
    for name, dim in (("pictures", 0.5), ("others", 0.3)):
        labels = np.arange(400) % len(LABELS)
        noise = draws.integers(0, 256, size=(400, 12, 12, 3))
        shown = (dim * kinds[labels] + (1 - dim) * noise).astype(np.uint8)
        np.savez(folder / f"{name}.npz", x=shown, y=np.array(LABELS)[labels])


def _rows(
    draws: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Inputs, labels and users; a person likes two labels, and looks its own way."""
    users = np.repeat(np.arange(len(USERS)), ROWS)
    likes = np.full((len(USERS), len(LABELS)), 0.15)
    for place in range(len(USERS)):
        likes[place, place % len(LABELS)] += 0.3
        likes[place, (place // 4 + place + 1) % len(LABELS)] += 0.1
    labels = np.concatenate([draws.choice(len(LABELS), size=ROWS, p=row) for row in likes])
    centres = 1.5 * draws.normal(size=(len(LABELS), FEATURES))
    looks = 0.4 * draws.normal(size=(len(USERS), FEATURES))
    inputs = centres[labels] + looks[users] + draws.normal(size=(len(users), FEATURES))
    return inputs, labels, users


def _examples(inputs: NDArray[np.float64], labels: NDArray[np.int64]) -> Examples:
    return Examples(torch.from_numpy(inputs.astype(np.float32)), torch.from_numpy(labels))


if __name__ == "__main__":
    for write in (write_people, write_texts, write_pictures):
        write(Path(sys.argv[1]))
