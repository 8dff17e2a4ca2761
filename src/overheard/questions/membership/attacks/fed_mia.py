"""Membership by comparison with the other clients of a round: FedMIA."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.defense import TrainingPart
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.messages import Weights, apply_update
from overheard.core.needs import BROADCASTS, CANDIDATES, MODEL, RECIPE, UPDATES
from overheard.core.parties import COHORT, Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.learning.evaluate import logits_of_models
from overheard.learning.example_gradients import example_gradients, flatten_weights
from overheard.questions.membership.claim import Membership
from overheard.questions.membership.estimators.record_logits import (
    record_confidence,
    rounds_to_read,
)
from overheard.simulation.gradient_evidence import check_trained, is_diverged

FEWEST_OTHERS = 2
"""Other clients that a round needs, so that their evidence has a spread."""

MIN_VARIANCE = 1e-8
"""Added to the variance of the other clients' evidence, as in the authors' code."""

MAX_GRADIENT_BYTES = 2**27
"""Largest size of the gradients of some records that are in memory at once."""

MAX_RECORDS = 256
"""The most records whose gradients are computed at once, which bounds their activations."""


@final
@dataclass(frozen=True, slots=True)
class FedMia(Attack[Membership]):
    """How far the evidence in the target's updates is above that in the other clients'.

    At most one client trained on a record. So the other clients of a round show what a client
    without the record sends: their evidence for it is normal, with a mean and a variance of
    this record. The score is the log-odds of the mean, over rounds, of the probability that
    such a client gives less evidence than the target. It is above 0 if that is above a half.

    There are no shadow models and no auxiliary examples, so it suits recordings. With few
    clients the variance comes of few values: some non-members then have extreme scores, and
    few members are found at few false positives. Clients that differ in their labels also
    differ in their evidence: then it says who holds such records.

    The paper's confidence is the hinge of the logits; here it is the log-odds of the label, as
    in `lira`.

    Args:
        evidence: "cosine" = the cosine of the update with minus the record's gradient at the
            broadcast, in all layers (FedMIA-II); "confidence" = the log-odds of the true label
            under the updated model (FedMIA-I).
        most_rounds: maximum number of rounds to read, evenly spaced from first to last.

    """

    evidence: Literal["cosine", "confidence"] = "cosine"
    most_rounds: Positive = 5

    name: ClassVar[str] = "fed_mia"
    claim_type: ClassVar = Membership
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, MODEL, RECIPE, CANDIDATES})
    source: ClassVar[str] = (
        "Zhu et al. 2025 (FedMIA: An Effective Membership Inference Attack Exploiting "
        "All-for-One Principle in Federated Learning, CVPR), FedMIA-I and FedMIA-II"
    )

    def used_training_parts(self) -> frozenset[TrainingPart]:
        """Return the parts of the known training that its claims depend on."""
        return frozenset({"loss"}) if self.evidence == "cosine" else frozenset()

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Membership]:
        """Claim the log-odds of each record.

        Raises:
            NeedsError: if a target sent no update in a round with two others, or one of a model
                that diverged.

        """
        read = rounds_to_read(view, targets, self.most_rounds)
        senders = {
            number: _senders(view, number)
            for number in sorted({number for rounds in read.values() for number in rounds})
        }
        rounds_of = {
            target: self._comparable_rounds(view, target, rounds, senders)
            for target, rounds in read.items()
        }
        numbers = sorted({number for rounds in rounds_of.values() for number in rounds})
        values = {
            number: self._values(view, knowledge, number, senders[number]) for number in numbers
        }
        return {
            target: Membership(
                _log_odds(
                    torch.stack(
                        [
                            _standardise(values[number], senders[number].index(target))
                            for number in rounds
                        ]
                    )
                ).float()
            )
            for target, rounds in rounds_of.items()
        }

    def _comparable_rounds(
        self,
        view: View,
        target: Party,
        rounds: Sequence[int],
        senders: Mapping[int, Sequence[Party]],
    ) -> tuple[int, ...]:
        """Return the rounds in which enough other clients sent an update."""
        check_trained(view, target, rounds)
        found = tuple(one for one in rounds if len(senders[one]) > FEWEST_OTHERS)
        if target == COHORT or not found:
            raise NeedsError(
                f"{self.name} compares one client's update with those of {FEWEST_OTHERS} or "
                f"more others in the same round. {target} has none such: ask about clients of "
                "a run with three or more in a round"
            )
        return found

    def _values(
        self, view: View, knowledge: Knowledge, number: int, senders: Sequence[Party]
    ) -> Float[Tensor, "senders records"]:
        """Return each sender's evidence for each record in one round."""
        assert knowledge.build_model is not None
        start = view.broadcasts()[number]
        deltas = [view.updates(sender)[number].delta for sender in senders]
        if self.evidence == "cosine":
            updates = torch.stack([flatten_weights(delta) for delta in deltas])
            return _cosines(updates, start, knowledge)
        records = candidate_records(knowledge)
        logits = logits_of_models(
            knowledge.build_model,
            (apply_update(start, delta) for delta in deltas),
            records.inputs,
            device=knowledge.compute.device,
            count=len(deltas) * knowledge.compute.repeats,
        )
        return torch.stack([record_confidence(one, records, knowledge.kind) for one in logits])


def _senders(view: View, number: int) -> list[Party]:
    """Return who sent an update of a trained model: another says nothing of any record."""
    return [
        party
        for party in view.senders()
        if number in view.rounds_with_updates(party)
        and not is_diverged(view.updates(party)[number].delta)
    ]


def _cosines(
    updates: Float[Tensor, "senders params"], start: Weights, knowledge: Knowledge
) -> Float[Tensor, "senders records"]:
    """Return the cosine of each update with minus the gradient of each record at `start`."""
    assert knowledge.build_model is not None
    assert knowledge.recipe is not None
    device = knowledge.compute.own_device
    weights = {name: tensor.to(device) for name, tensor in start.items()}
    records = candidate_records(knowledge).to(device)
    directions = torch.nn.functional.normalize(updates.to(device).double())
    size = max(1, MAX_GRADIENT_BYTES // (updates.shape[1] * updates.element_size()))
    parts = []
    for rows in torch.split(torch.arange(len(records)), min(size, MAX_RECORDS)):
        part = records.take(rows.to(device))
        gradients = example_gradients(knowledge.build_model, weights, part, knowledge.recipe)
        unit = torch.nn.functional.normalize(gradients.double())
        parts.append(-directions @ unit.T)
    return torch.cat(parts, 1).cpu()


def _standardise(
    values: Float[Tensor, "senders records"], target: int
) -> Float[Tensor, " records"]:
    """Return the target's values, by the mean and deviation of the other senders' ones."""
    others = torch.cat((values[:target], values[target + 1 :])).double()
    deviation = (others.var(0, correction=0) + MIN_VARIANCE).sqrt()
    return (values[target].double() - others.mean(0)) / deviation


def _log_odds(standardised: Float[Tensor, "rounds records"]) -> Float[Tensor, " records"]:
    """Return the log-odds of the mean normal probability below each value.

    Probabilities are added on the log scale, since those near 1 differ too little to rank.
    """
    below = torch.special.log_ndtr(standardised).logsumexp(0)
    above = torch.special.log_ndtr(-standardised).logsumexp(0)
    odds: Tensor = below - above
    return odds
