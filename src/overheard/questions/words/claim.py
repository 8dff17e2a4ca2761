"""The claim about the words that a target used."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.claims import Claim
from overheard.core.errors import ClaimError

MOST_LISTED = 100
"""Words whose scores a finding keeps; of thousands of words, it would be hundreds of times as
large."""

MOST_CHARACTERS = 40
"""Longest word that a finding keeps, in characters; of longer ones it keeps the start."""


@dataclass(frozen=True, slots=True)
class Words(Claim):
    """Which words of the vocabulary occur in the target's examples.

    Args:
        scores: evidence that the target used the word, one per word in the order of tokens;
            larger = more.
        names: the words, all different.
        is_rare: whether a word is rare in the text that the attacker knows; None = it knows
            none, and every word counts as rare.
        listed: places of the words that findings list; () = the rare ones with the highest
            scores, at most `MOST_LISTED`.

    """

    scores: Float[Tensor, " words"]
    names: tuple[str, ...]
    is_rare: Bool[Tensor, " words"] | None = None
    listed: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse scores that cannot be ranked, and names or marks of other words."""
        if not len(self.scores) or not bool(self.scores.isfinite().all()):
            raise ClaimError("a claim about words needs one or more scores, all finite")
        if len(set(self.names)) != len(self.scores):
            raise ClaimError(
                f"{len(self.scores)} scores need as many different words, got "
                f"{len(set(self.names))}"
            )
        if self.is_rare is not None and self.is_rare.shape != self.scores.shape:
            raise ClaimError("`is_rare` must have one entry per word")

    def rare_places(self) -> Bool[Tensor, " words"]:
        """Return whether each word counts as rare; all words do if none is known to be."""
        if self.is_rare is None or not bool(self.is_rare.any()):
            return torch.ones(len(self.scores), dtype=torch.bool)
        return self.is_rare

    def listed_places(self) -> tuple[int, ...]:
        """Return the places of the words that findings list, the highest score first."""
        if self.listed:
            return self.listed
        rare = self.rare_places().nonzero()[:, 0]
        order = self.scores[rare].argsort(descending=True, stable=True)
        return tuple(rare[order[:MOST_LISTED]].tolist())

    def numbers(self) -> tuple[float, ...]:
        """Return the score of each listed word."""
        return tuple(self.scores[list(self.listed_places())].tolist())

    def candidates(self) -> tuple[str, ...]:
        """Return the listed words; of long ones the start and their place."""
        return tuple(
            name
            if len(name := self.names[place]) <= MOST_CHARACTERS
            else f"{name[:MOST_CHARACTERS]}… (word {place + 1})"
            for place in self.listed_places()
        )
