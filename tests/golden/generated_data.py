"""Generated data for golden plans: users, short texts, next words and pictures."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from overheard.core.examples import Examples, without_classes
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.task import Task
from overheard.data.dataset import Dataset

LABELS = ("a", "b", "c", "d")
HANDS = ("left", "right")

FEATURES = 5

ROWS = 80
"""Rows per user; the last sixteen are test examples."""

TESTED = 16

USERS = tuple(f"person-{number}" for number in range(12))
MANY_USERS = tuple(f"person-{number}" for number in range(40))

WORDS = 60
RESERVED = 2
"""Tokens that are no words: padding and unknown words."""

TOKENS = 8
"""Tokens of a text, with padding."""


def people() -> Dataset:
    """Return twelve users who differ, with another modality, an attribute and background."""
    return _people(USERS, offset=0.8, seed=20)


def alike_people() -> Dataset:
    """Return forty users who differ in nothing but their names."""
    return _people(MANY_USERS, offset=0.0, seed=24)


def crowd() -> Dataset:
    """Return forty users who differ a little."""
    return _people(MANY_USERS, offset=0.4, seed=25)


def texts() -> Dataset:
    """Return texts of twelve users with three ratings; each user has words of its own."""
    generator = np.random.default_rng(22)
    rows = len(USERS) * ROWS
    users = np.repeat(np.arange(len(USERS)), ROWS)
    ratings = generator.integers(3, size=rows)
    drawn = generator.integers(20, size=(rows, TOKENS)) + 15 * ratings[:, None]
    own = generator.random((rows, TOKENS)) < 0.2
    drawn[own] = (45 + users[:, None] + np.zeros_like(drawn))[own]
    tokens = RESERVED + drawn % WORDS
    tokens[np.arange(TOKENS) >= generator.integers(4, TOKENS + 1, size=rows)[:, None]] = 0
    tested = np.tile(np.arange(ROWS) >= ROWS - TESTED, len(USERS))
    names = tuple(f"word{number}" for number in range(WORDS))
    return Dataset(
        _texts(tokens[~tested], ratings[~tested]),
        _texts(tokens[tested], ratings[tested]),
        Task((TOKENS,), ("poor", "fair", "good"), vocabulary=WORDS + RESERVED),
        users=torch.from_numpy(users[~tested]),
        user_names=USERS,
        token_words=TokenWords(WORDS + RESERVED, RESERVED, names),
    )


def next_words() -> Dataset:
    """Return texts of twelve users whose label is the next word."""
    generator = np.random.default_rng(26)
    rows = len(USERS) * ROWS
    users = np.repeat(np.arange(len(USERS)), ROWS)
    drawn = generator.integers(24, size=(rows, TOKENS + 1))
    own = generator.random(drawn.shape) < 0.3
    drawn[own] = (24 + 3 * users[:, None] + drawn % 3)[own]
    tokens = RESERVED + drawn
    tested = np.tile(np.arange(ROWS) >= ROWS - TESTED, len(USERS))
    words = tuple(f"word{number}" for number in range(WORDS))
    labels = ("padding", "unknown", *words)
    return Dataset(
        _texts(tokens[~tested, :-1], tokens[~tested, -1]),
        _texts(tokens[tested, :-1], tokens[tested, -1]),
        Task((TOKENS,), labels, vocabulary=len(labels)),
        users=torch.from_numpy(users[~tested]),
        user_names=USERS,
        token_words=TokenWords(len(labels), RESERVED, words, RESERVED),
    )


def pictures() -> Dataset:
    """Return colour images of 12 x 12 in four classes."""
    return _pictures(weight=0.5)


def other_pictures() -> Dataset:
    """Return noisier images of the same classes, for an attacker's auxiliary examples."""
    return _pictures(weight=0.3)


def readings() -> Dataset:
    """Return six numbers per example, of which a seventh is predicted."""
    generator = np.random.default_rng(27)
    inputs = generator.normal(size=(600, 6))
    outputs = inputs[:, :1] - inputs[:, 1:2] + 0.1 * generator.normal(size=(600, 1))
    task = Task((6,), ("dose",), kind="regression")
    return Dataset(
        _numbers(inputs[:500], outputs[:500]), _numbers(inputs[500:], outputs[500:]), task
    )


def network(task: Task) -> nn.Module:
    """Return a convolution and two linear layers for `pictures`."""
    channels, *_ = task.shape
    return nn.Sequential(
        nn.Conv2d(channels, 3, 3, stride=2),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(3 * 5 * 5, 8),
        nn.ReLU(),
        nn.Linear(8, task.classes),
    )


def normed_network(task: Task) -> nn.Module:
    """Return a convolution with a batch norm and a linear layer for `pictures`."""
    channels, *_ = task.shape
    return nn.Sequential(
        nn.Conv2d(channels, 3, 3, stride=2),
        nn.BatchNorm2d(3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(3 * 5 * 5, task.classes),
    )


def _people(names: tuple[str, ...], offset: float, seed: int) -> Dataset:
    """Return users with two frequent labels each, whose inputs lie an own offset away."""
    generator = np.random.default_rng(seed)
    count = len(names)
    users = np.repeat(np.arange(count), ROWS)
    frequencies = np.full((count, len(LABELS)), 0.15)
    if offset:
        for user in range(count):
            frequencies[user, user % len(LABELS)] += 0.3
            frequencies[user, (user // 4 + user + 1) % len(LABELS)] += 0.1
    frequencies /= frequencies.sum(1, keepdims=True)
    labels = np.concatenate(
        [generator.choice(len(LABELS), size=ROWS, p=row) for row in frequencies]
    )
    centres = 1.5 * generator.normal(size=(len(LABELS), FEATURES))
    offsets = offset * generator.normal(size=(count, FEATURES))
    inputs = centres[labels] + offsets[users] + generator.normal(size=(len(users), FEATURES))
    tested = np.tile(np.arange(ROWS) >= ROWS - TESTED, count)
    embeddings = np.eye(count)[users]
    embeddings = embeddings + generator.normal(scale=0.1, size=embeddings.shape)
    background = _examples(
        generator.normal(size=(60, FEATURES)), generator.integers(len(LABELS), size=60)
    )
    return Dataset(
        _examples(inputs[~tested], labels[~tested]),
        _examples(inputs[tested], labels[tested]),
        Task((FEATURES,), LABELS),
        users=torch.from_numpy(users[~tested]),
        user_names=names,
        times=torch.arange(int((~tested).sum())),
        embeddings=torch.from_numpy(embeddings[~tested].astype(np.float32)),
        attributes={"hand": tuple(HANDS[user % 2] for user in range(count))},
        background=background,
    )


def _pictures(weight: float) -> Dataset:
    generator = np.random.default_rng(23)
    patterns = generator.random(size=(len(LABELS), 3, 12, 12))
    labels = np.arange(400) % len(LABELS)
    noise = generator.random(size=(400, 3, 12, 12))
    images = weight * patterns[labels] + (1 - weight) * noise
    return Dataset(
        _examples(images[:320], labels[:320]),
        _examples(images[320:], labels[320:]),
        Task((3, 12, 12), LABELS),
    )


def _examples(inputs: NDArray[np.float64], labels: NDArray[np.int64]) -> Examples:
    return Examples(torch.from_numpy(inputs.astype(np.float32)), torch.from_numpy(labels))


def _texts(tokens: NDArray[np.int64], labels: NDArray[np.int64]) -> Examples:
    return Examples(torch.from_numpy(tokens), torch.from_numpy(labels))


def _numbers(inputs: NDArray[np.float64], outputs: NDArray[np.float64]) -> Examples:
    from_numpy = torch.from_numpy
    return without_classes(
        from_numpy(inputs.astype(np.float32)), from_numpy(outputs.astype(np.float32))
    )
