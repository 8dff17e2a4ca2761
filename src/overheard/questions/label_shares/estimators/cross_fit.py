"""Estimators of label shares from one round, evaluated on clients they were not trained on."""

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
"""Estimators of each kind: one for each half, and one trained on both."""


@final
@dataclass(frozen=True, slots=True)
class CrossFit:
    """Two kinds of network and one formula, fitted to one round's virtual clients.

    There are three estimators of each kind. Two are trained on the virtual clients of one half
    of the auxiliary examples each; the clients of the other half are new to them, as every real
    client is. The third is trained on all virtual clients and has the most examples.

    Args:
        tokens: networks that treat the classes one by one.
        numbers: networks that take all features at once.
        inversion: solutions of the equation of the output bias, also inputs of `tokens`.
        of_virtual: out-of-sample estimates for each virtual client, by the estimator trained on
            the other half.

    """

    tokens: TokenReader
    numbers: NumberReader
    inversion: Inversion
    of_virtual: Float[Tensor, "kinds clients classes"]

    def read(self, readings: Readings) -> Float[Tensor, "kinds networks clients classes"]:
        """Estimate new clients with the networks of either half, then those of both."""
        kinds = (self.tokens, self.numbers, self.inversion)
        return torch.stack([kind.read(readings) for kind in kinds])

    def tensors(self) -> dict[str, Tensor]:
        """Return all fitted tensors by name, for `from_tensors`."""
        tensors = {"of_virtual": self.of_virtual, "inversion": self.inversion.weights}
        return tensors | self.tokens.tensors() | self.numbers.tensors()

    @staticmethod
    def from_tensors(tensors: Mapping[str, Tensor]) -> "CrossFit":
        """Restore the estimators from `tensors`."""
        inversion = Inversion(tensors["inversion"])
        classes = tensors["of_virtual"].shape[2]
        return CrossFit(
            TokenReader.from_tensors(tensors, classes, inversion),
            NumberReader.from_tensors(tensors, classes, NETWORKS),
            inversion,
            tensors["of_virtual"],
        )


def cross_fit(
    readings: Readings,
    shares: Float[Tensor, "clients classes"],
    halves: Int[Tensor, " clients"],
    steps: int,
    seed: Seed,
) -> CrossFit:
    """Fit all estimators to the virtual clients of one round."""
    rows = [(halves == half).nonzero().flatten() for half in range(HALVES)]
    rows.append(torch.arange(len(halves)))
    if min(map(len, rows)) < 2:
        raise ValueError("each half needs 2 virtual clients or more")
    with one_thread():
        inversion = learn_inversion(readings, shares, rows)
        tokens = learn_tokens(readings, shares, inversion, rows, steps, seed.child("tokens"))
        numbers = learn_numbers(readings, shares, rows, steps, seed.child("numbers"))
        clients = torch.arange(len(shares))
        kinds = (tokens, numbers, inversion)
        estimates = [kind.read(readings)[1 - halves, clients] for kind in kinds]
    return CrossFit(tokens, numbers, inversion, torch.stack(estimates))
