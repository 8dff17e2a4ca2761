"""Twelve users with labels, embeddings and an attribute, as a data set and as tables."""

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
"""Rows per user; the last sixteen are test examples."""

TESTED = 16
HANDS = ("left", "right")


def people() -> Dataset:
    """Return a data set with another modality and background examples."""
    generator = np.random.default_rng(20)
    inputs, labels, users = _rows(generator)
    tested = np.tile(np.arange(ROWS) >= ROWS - TESTED, len(USERS))
    embeddings = np.eye(len(USERS))[users]
    embeddings = embeddings + generator.normal(scale=0.1, size=embeddings.shape)
    background = Examples(
        torch.from_numpy(generator.normal(size=(60, FEATURES)).astype(np.float32)),
        torch.from_numpy(generator.integers(len(LABELS), size=60)),
    )
    return Dataset(
        _examples(inputs[~tested], labels[~tested]),
        _examples(inputs[tested], labels[tested]),
        Task((FEATURES,), LABELS),
        users=torch.from_numpy(users[~tested]),
        user_names=USERS,
        times=torch.arange(int((~tested).sum())),
        embeddings=torch.from_numpy(embeddings[~tested].astype(np.float32)),
        attributes={"hand": tuple(HANDS[user % 2] for user in range(len(USERS)))},
        background=background,
    )


def write_people(folder: Path) -> None:
    """Write the users as CSV and Parquet tables."""
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
    """Write texts of five users with three ratings, each with its own words."""
    generator, rows = np.random.default_rng(22), []
    for user in range(5):
        for _ in range(80):
            rating = int(generator.choice(3, p=np.roll((0.6, 0.3, 0.1), user)))
            count = generator.integers(3, 9)
            words = generator.integers(rating * 12, rating * 12 + 24, size=count)
            text = " ".join((*(f"word{word}" for word in words), f"name{user}"))
            rows.append({"said": text, "label": str(rating), "user": USERS[user]})
    pd.DataFrame(rows).to_csv(folder / "texts.csv", index=False)


def write_pictures(folder: Path) -> None:
    """Write colour images of 12 x 12 in four classes, and others of the same classes."""
    generator = np.random.default_rng(23)
    classes = generator.integers(0, 256, size=(len(LABELS), 12, 12, 3))
    for name, weight in (("pictures", 0.5), ("others", 0.3)):
        labels = np.arange(400) % len(LABELS)
        noise = generator.integers(0, 256, size=(400, 12, 12, 3))
        images = (weight * classes[labels] + (1 - weight) * noise).astype(np.uint8)
        np.savez(folder / f"{name}.npz", x=images, y=np.array(LABELS)[labels])


def _rows(
    generator: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Draw inputs, labels and users; each user has two frequent labels and an own offset."""
    users = np.repeat(np.arange(len(USERS)), ROWS)
    frequencies = np.full((len(USERS), len(LABELS)), 0.15)
    for user in range(len(USERS)):
        frequencies[user, user % len(LABELS)] += 0.3
        frequencies[user, (user // 4 + user + 1) % len(LABELS)] += 0.1
    labels = np.concatenate(
        [generator.choice(len(LABELS), size=ROWS, p=row) for row in frequencies]
    )
    centres = 1.5 * generator.normal(size=(len(LABELS), FEATURES))
    offsets = 0.4 * generator.normal(size=(len(USERS), FEATURES))
    inputs = centres[labels] + offsets[users] + generator.normal(size=(len(users), FEATURES))
    return inputs, labels, users


def _examples(inputs: NDArray[np.float64], labels: NDArray[np.int64]) -> Examples:
    return Examples(torch.from_numpy(inputs.astype(np.float32)), torch.from_numpy(labels))


if __name__ == "__main__":
    for write in (write_people, write_texts, write_pictures):
        write(Path(sys.argv[1]))
