"""The users of Decaf's tables: their true label shares and the published claims."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, final

import torch

from overheard.learning.simplex import normalize_to_shares
from overheard.questions.label_shares.claim import LabelShares

NULL = "-"
"""The tables' mark for a null class; a 0 is a share that was estimated as 0."""

Stated = tuple[float, ...]


@final
@dataclass(frozen=True, slots=True)
class User:
    """One user of a table, as published.

    Args:
        true: true share of each class in percent; 0 for a null class.
        claimed: shares that the paper's attack claimed.
        null: for each class, whether the user holds none of it.
        named_null: for each class, whether the attack claimed it as null.
        stated: L1, L2 and Linf in percent if the table has them; else ().
        guess: the same for the paper's random guess.

    """

    true: tuple[float, ...]
    claimed: tuple[float, ...]
    null: tuple[bool, ...]
    named_null: tuple[bool, ...]
    stated: Stated
    guess: Stated

    def reordered(self, columns: Sequence[int]) -> "User":
        """Return the same user with column `columns[i]` of the table as label i."""
        return replace(
            self,
            true=tuple(self.true[column] for column in columns),
            claimed=tuple(self.claimed[column] for column in columns),
            null=tuple(self.null[column] for column in columns),
            named_null=tuple(self.named_null[column] for column in columns),
        )

    def truth(self) -> LabelShares:
        """Return the ground truth."""
        return _shares(self.true, self.null)

    def claim(self) -> LabelShares:
        """Return the claim of the paper's attack."""
        return _shares(self.claimed, self.named_null)


@cache
def tables() -> Mapping[str, tuple[User, ...]]:
    """Return the users of each table, by names such as "table3"."""
    return {
        name: tuple(_user(entry) for entry in rows)
        for name, rows in _document().items()
        if isinstance(rows, list)
    }


@cache
def accuracies() -> Mapping[str, float]:
    """Return the accuracy of the global model (0..1) by defense: Table XI."""
    return {name: value / 100 for name, value in _document()["accuracy"].items()}


# Any: values of the TOML file, which are converted to typed values above.
@cache
def _document() -> dict[str, Any]:
    file = files("overheard.papers").joinpath("published/decaf.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _user(entry: Mapping[str, str]) -> User:
    true, claimed = entry["true"].split(), entry["decaf"].split()
    return User(
        _numbers(true),
        _numbers(claimed),
        tuple(word == NULL for word in true),
        tuple(word == NULL for word in claimed),
        _numbers(entry.get("stated", "").split()),
        _numbers(entry.get("guess", "").split()),
    )


def _numbers(words: list[str]) -> tuple[float, ...]:
    return tuple(0.0 if word == NULL else float(word) for word in words)


def _shares(percent: tuple[float, ...], null: tuple[bool, ...]) -> LabelShares:
    shares = normalize_to_shares(torch.tensor(percent, dtype=torch.float64))
    return LabelShares(shares, torch.tensor(null))
