"""Membership of canaries with crafted gradients: how far an update points along each."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from overheard.core.algorithm.crafted_gradients import along_crafted
from overheard.core.attack import Attack
from overheard.core.defense import TrainingPart
from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import CandidateRecords
from overheard.core.messages import Weights
from overheard.core.needs import AUXILIARY, BROADCASTS, CANDIDATES, MODEL, RECIPE, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.example_gradients import example_gradients, flatten_weights
from overheard.learning.initialization import model_structure
from overheard.learning.sent_tensors import trainable_parameters
from overheard.questions.membership.claim import Membership

MAX_GRADIENT_BYTES = 2**27
"""The most memory for the gradients of auxiliary examples that are removed from updates."""

MOST_GRADIENTS = 300
"""The most auxiliary examples whose gradients are removed from updates."""


@final
@dataclass(frozen=True, slots=True)
class CraftedGradients(Attack[Membership]):
    """How far updates point along the crafted gradient of each canary.

    It reads canaries = "crafted", whose gradients are public: this is the strongest observer,
    who chose the gradient of a record, and it is meant for lower bounds of epsilon. In an arm
    without noise no gradient is crafted, and it claims noise. Of other candidates it takes the
    direction of their own gradients at the broadcast. What the client's own examples do along a
    crafted gradient is noise to it, so the span of the gradients of auxiliary examples at the
    broadcast is removed from each update.
    """

    name: ClassVar[str] = "crafted_gradients"
    claim_type: ClassVar = Membership
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, MODEL, RECIPE, AUXILIARY, CANDIDATES})
    source: ClassVar[str] = (
        "Overheard, after Nasr et al. 2023 (Tight Auditing of Differentially Private Machine "
        "Learning, USENIX Security): the gradient canary of the white-box adversary"
    )

    def used_training_parts(self) -> frozenset[TrainingPart]:
        """Return the parts of the known training that its claims depend on."""
        return frozenset({"loss"})

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Membership]:
        """Claim minus the inner product of all updates with each crafted gradient.

        Raises:
            NeedsError: if there are more crafted gradients than weights.

        """
        known = knowledge.facts.need(CandidateRecords)
        assert knowledge.build_model is not None
        names = tuple(sorted(trainable_parameters(model_structure(knowledge.build_model))))
        count, broadcasts = len(known.records), view.broadcasts()
        totals = {target: torch.zeros(count) for target in targets}
        for number, start in broadcasts.items():
            senders = [one for one in targets if number in view.updates(one)]
            if not senders:
                continue
            basis = _gradient_span(names, start, knowledge)
            if known.are_crafted and len(basis) < count:
                raise NeedsError("as many weights as there are candidate records")
            for target in senders:
                delta = view.updates(target)[number].delta
                update = flatten_weights({name: delta[name].float() for name in names})
                rest = update - basis @ (basis.T @ update)
                totals[target] -= (
                    along_crafted(rest, count)
                    if known.are_crafted
                    else _along_own(rest, known.records, names, start, knowledge)
                )
        return {target: Membership(total) for target, total in totals.items()}


def _along_own(
    update: Float[Tensor, " parameters"],
    records: Examples,
    names: Collection[str],
    start: Weights,
    knowledge: Knowledge,
) -> Float[Tensor, " records"]:
    """Return the inner product of an update with the direction of each record's gradient."""
    assert knowledge.build_model is not None
    assert knowledge.recipe is not None
    is_kept, found = _are_of(names, start), []
    part = max(1, MAX_GRADIENT_BYTES // (4 * len(is_kept)))
    for rows in torch.split(torch.arange(len(records)), part):
        some = records.take(rows)
        gradients = example_gradients(knowledge.build_model, start, some, knowledge.recipe)
        found.append(functional.normalize(gradients[:, is_kept].float(), dim=1) @ update)
    return torch.cat(found)


def _are_of(names: Collection[str], start: Weights) -> Bool[Tensor, " weights"]:
    """Return which of all flattened weights are of these tensors."""
    return torch.cat([torch.full((start[one].numel(),), one in names) for one in sorted(start)])


def _gradient_span(
    names: Collection[str], start: Weights, knowledge: Knowledge
) -> Float[Tensor, "parameters gradients"]:
    """Return an orthonormal basis of the gradients of auxiliary examples, of these tensors."""
    assert knowledge.build_model is not None
    assert knowledge.recipe is not None
    assert knowledge.auxiliary is not None
    is_kept = _are_of(names, start)
    size = len(is_kept)
    most = min(MOST_GRADIENTS, size // 4, MAX_GRADIENT_BYTES // (4 * size))
    examples = knowledge.auxiliary.take(torch.arange(min(most, len(knowledge.auxiliary))))
    gradients = example_gradients(knowledge.build_model, start, examples, knowledge.recipe)
    basis: Tensor = torch.linalg.qr(gradients[:, is_kept].float().T)[0]
    return basis
