"""What tells label shares from one round's readings, judged on clients that it has not met."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.learning.threads import one_thread
from overheard.questions.label_shares.estimators.class_tokens import Readings
from overheard.questions.label_shares.estimators.inversion import Inversion, learn_inversion
from overheard.questions.label_shares.estimators.number_reader import (
    NumberReader,
    learn_numbers,
)
from overheard.questions.label_shares.estimators.token_reader import TokenReader, learn_tokens

HALVES = 2

NETWORKS = HALVES + 1
"""Of each kind: one of each half, and one that learned from both."""


@final
@dataclass(frozen=True, slots=True)
class CrossFit:
    """What was learned from one round's virtual clients, by two kinds of network and a formula.

    Of each kind there is one reader that learned from the virtual clients of one half of the
    auxiliary examples, to which the other half's clients are new as every real one is; one of
    the other half; and one that learned from all, which has met the most examples.

    Args:
        tokens: networks that read class by class.
        numbers: networks that read plain numbers.
        inversion: of the equation of the bias, which the networks of tokens read too.
        of_virtual: what the kinds tell of each virtual client, by the reader of the half that
            the client did not learn from.

    """

    tokens: TokenReader
    numbers: NumberReader
    inversion: Inversion
    of_virtual: Float[Tensor, "kinds clients classes"]

    def read(self, readings: Readings) -> Float[Tensor, "kinds networks clients classes"]:
        """What the readers of either half, and then those of both, tell of new clients."""
        kinds = (self.tokens, self.numbers, self.inversion)
        return torch.stack([one.read(readings) for one in kinds])

    def tensors(self) -> dict[str, Tensor]:
        """All that was learned, by name, for `from_tensors`."""
        own = {"of_virtual": self.of_virtual, "inversion": self.inversion.weights}
        return own | self.tokens.tensors() | self.numbers.tensors()

    @staticmethod
    def from_tensors(kept: Mapping[str, Tensor]) -> "CrossFit":
        """What `tensors` gave, as it was."""
        inversion = Inversion(kept["inversion"])
        classes = kept["of_virtual"].shape[2]
        return CrossFit(
            TokenReader.from_tensors(kept, classes, inversion),
            NumberReader.from_tensors(kept, classes, NETWORKS),
            inversion,
            kept["of_virtual"],
        )


def cross_fit(
    readings: Readings,
    shares: Float[Tensor, "clients classes"],
    halves: Int[Tensor, " clients"],
    steps: int,
    seed: Seed,
) -> CrossFit:
    """Learn to tell the shares of virtual clients from what was read of them in one round."""
    rows = [(halves == half).nonzero().flatten() for half in range(HALVES)]
    rows.append(torch.arange(len(halves)))
    if min(map(len, rows)) < 2:
        raise ValueError("each half needs 2 virtual clients or more")
    with one_thread():
        inversion = learn_inversion(readings, shares, rows)
        tokens = learn_tokens(readings, shares, inversion, rows, steps, seed.child("tokens"))
        numbers = learn_numbers(readings, shares, rows, steps, seed.child("numbers"))
        everyone = torch.arange(len(shares))
        kinds = (tokens, numbers, inversion)
        of_virtual = [one.read(readings)[1 - halves, everyone] for one in kinds]
    return CrossFit(tokens, numbers, inversion, torch.stack(of_virtual))
