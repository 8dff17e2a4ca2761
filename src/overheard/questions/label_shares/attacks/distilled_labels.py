"""Label shares from what a client changed in soft labels and learning rates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.messages import DistilledSet
from overheard.core.needs import DISTILLED
from overheard.core.parties import SERVER, Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.simplex import normalised
from overheard.questions.label_shares.claim import LabelShares


@final
@dataclass(frozen=True, slots=True)
class DistilledLabels(Attack[LabelShares]):
    """The labels that a client's distilled examples teach more of than the server's did.

    All clients start a round from the server's set. What a client makes of it teaches class c
    with the weight sum over i of rate_i label_ic. By how much that is above the server's, made
    to have mean 0 and deviation 1 over the classes, is taken for how far the client's share of
    c lies off the mean, on average over rounds. The scale is that of shares all of which are
    equally likely (a flat Dirichlet's deviation), as steps of Adam do not tell how much was
    asked for. No training, no auxiliary example.

    The first rounds tell most: later on sets teach every client's classes about right, and what
    is left to change is little. Who says that it lacks a class (`lacking = "mask"`) is taken at
    its word.

    Args:
        most_rounds: that are read, the first ones heard.

    """

    most_rounds: int = 5

    name: ClassVar[str] = "distilled_labels"
    answers: ClassVar = LabelShares
    needs: ClassVar = frozenset({DISTILLED})
    source: ClassVar[str] = "ours, on the messages of FLiP (arXiv 2410.19548), Section IV-B"

    def __post_init__(self) -> None:
        """Refuse to read nothing."""
        if self.most_rounds < 1:
            raise ValueError(f"most_rounds is 1 or more, got {self.most_rounds}")

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim shares for every target."""
        shared = view.distilled(SERVER)
        classes = knowledge.classes
        expected = knowledge.auxiliary_shares()
        middle = torch.full((classes,), 1 / classes) if expected is None else expected
        scale = sqrt((classes - 1) / (classes + 1)) / classes
        claims = {}
        for target in targets:
            sets = view.distilled(target)
            rounds = sorted(sets.keys() & shared.keys())[: self.most_rounds]
            moved = [_moved(sets[number], shared[number]) for number in rounds]
            shares = (middle.double() + scale * torch.stack(moved).mean(0)).clamp(min=0)
            absent = torch.stack([_masked(sets[n].counts, classes) for n in rounds]).any(0)
            shares[absent] = 0
            claims[target] = LabelShares(normalised(shares).float(), absent=absent)
        return claims


def _moved(own: DistilledSet, shared: DistilledSet) -> Float[Tensor, " classes"]:
    """By how much more of each class is taught, with mean 0 and deviation 1."""
    change = _taught(own) - _taught(shared)
    change = change - change.mean()
    deviation = change.std()
    return change / deviation if bool(deviation > 0) else change


def _taught(said: DistilledSet) -> Float[Tensor, " classes"]:
    return (said.rates.double().unsqueeze(1) * said.labels.double()).sum(0)


def _masked(counts: Float[Tensor, " examples"], classes: int) -> Bool[Tensor, " classes"]:
    """Classes none of whose examples count; examples are of the classes in turn."""
    return counts.view(-1, classes).amax(0) <= 0
