"""Label shares from a client's changes to distilled soft labels and learning rates."""

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
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.learning.simplex import normalize_to_shares
from overheard.questions.label_shares.claim import LabelShares


@final
@dataclass(frozen=True, slots=True)
class DistilledLabels(Attack[LabelShares]):
    """Finds the labels that a client's distilled examples weight more than the server's do.

    All clients start a round from the server's distilled set. A client's set gives class c the
    weight sum over i of rate_i label_ic. Its increase over the server's weight is standardised
    over the classes (mean 0, deviation 1) and averaged over rounds. It then estimates how far
    the client's share of c lies from the expected share. The size of Adam's steps does not show
    the size of the deviation, so its scale is that of a flat Dirichlet distribution. The attack
    needs no training and no auxiliary examples.

    The first rounds are the most informative: later sets already fit the clients' classes and
    change little. A class that a client masks as missing (`lacking = "mask"`) is claimed
    absent.

    Args:
        most_rounds: at most this many rounds are read, the first observed ones.

    """

    most_rounds: Positive = 5

    name: ClassVar[str] = "distilled_labels"
    claim_type: ClassVar = LabelShares
    needs: ClassVar = frozenset({DISTILLED})
    source: ClassVar[str] = (
        "Overheard, on the messages of FLiP (arXiv 2410.19548), Section IV-B"
    )

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim shares for every target."""
        shared = view.distilled_sets(SERVER)
        classes = knowledge.classes
        prior = knowledge.auxiliary_label_shares()
        expected = torch.full((classes,), 1 / classes) if prior is None else prior
        scale = sqrt((classes - 1) / (classes + 1)) / classes
        claims = {}
        for target in targets:
            sets = view.distilled_sets(target)
            rounds = sorted(sets.keys() & shared.keys())[: self.most_rounds]
            changes = [_standardised_change(sets[number], shared[number]) for number in rounds]
            shares = (expected.double() + scale * torch.stack(changes).mean(0)).clamp(min=0)
            absent = torch.stack(
                [_masked_classes(sets[n].counts, classes) for n in rounds]
            ).any(0)
            shares[absent] = 0
            claims[target] = LabelShares(normalize_to_shares(shares).float(), absent=absent)
        return claims


def _standardised_change(own: DistilledSet, shared: DistilledSet) -> Float[Tensor, " classes"]:
    """Standardise the change of the class weights to mean 0 and deviation 1."""
    change = _class_weights(own) - _class_weights(shared)
    change = change - change.mean()
    deviation = change.std()
    return change / deviation if bool(deviation > 0) else change


def _class_weights(distilled: DistilledSet) -> Float[Tensor, " classes"]:
    return (distilled.rates.double().unsqueeze(1) * distilled.labels.double()).sum(0)


def _masked_classes(
    counts: Float[Tensor, " examples"], classes: int
) -> Bool[Tensor, " classes"]:
    """Find the classes whose examples all have count 0; examples cycle through the classes."""
    return counts.view(-1, classes).amax(0) <= 0
