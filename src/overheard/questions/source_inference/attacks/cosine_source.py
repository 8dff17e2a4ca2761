"""The client whose update points most along a record's gradient, beside the others' updates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.attack import Attack
from overheard.core.defense import TrainingPart
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.messages import Weights
from overheard.core.needs import BROADCASTS, CANDIDATES, MODEL, RECIPE, UPDATES
from overheard.core.parties import COHORT, Party
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.learning.example_gradients import example_gradients, flatten_weights
from overheard.questions.source_inference.claim import RecordSources
from overheard.questions.source_inference.estimators.observed_rounds import (
    make_claim,
    rounds_to_read,
    stated_examples,
)
from overheard.simulation.gradient_evidence import LARGEST_CHANGE, is_diverged

FEWEST_CLIENTS = 3
"""Clients that a round needs, so that the others' cosines have a spread."""

MIN_VARIANCE = 1e-8
"""Added to the variance of the others' cosines, as in the code of the paper's authors."""

MAX_GRADIENT_BYTES = 2**27
"""Largest size of the gradients of some records that are in memory at once."""

MAX_RECORDS = 256
"""The most records whose gradients are computed at once, which bounds their activations."""


@final
@dataclass(frozen=True, slots=True)
class CosineSource(Attack[RecordSources]):
    """Compares each client's cosine with a record's gradient with those of the other clients.

    The cosine is that of the update with minus the record's gradient at the broadcast, in all
    layers. The cosines of the other clients are normal if they do not hold the record; the
    evidence for a client is the log-odds that such a client has a smaller cosine, as in FedMIA.
    Evidence is averaged over the rounds of a client, and the probabilities of clients are its
    softmax. Whether any client holds the record is not estimated.

    Args:
        most_rounds: maximum number of rounds to read, evenly spaced from first to last.

    """

    most_rounds: Positive = 5

    name: ClassVar[str] = "cosine_source"
    claim_type: ClassVar = RecordSources
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, MODEL, RECIPE, CANDIDATES})
    source: ClassVar[str] = (
        "Overheard; the evidence is that of Zhu et al. 2025 (FedMIA, CVPR), FedMIA-II"
    )
    is_joint: ClassVar[bool] = True

    def used_training_parts(self) -> frozenset[TrainingPart]:
        """Return the parts of the known training that its claims depend on."""
        return frozenset({"loss"})

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, RecordSources]:
        """Claim the softmax of the mean evidence.

        Raises:
            NeedsError: if a target sent no update in a round with two other targets, or no
                round has updates of trained models of three.

        """
        evidence = torch.zeros(
            len(targets), len(candidate_records(knowledge)), dtype=torch.float64
        )
        rounds, broadcasts = torch.zeros(len(targets), 1), view.broadcasts()
        chosen = rounds_to_read(view, targets, self.most_rounds, FEWEST_CLIENTS)
        for number, senders in chosen.items():
            updates = {one: view.updates(one)[number].delta for one in senders}
            # An update of no trained model says nothing of any record, nor of other clients.
            trained = {one: delta for one, delta in updates.items() if not is_diverged(delta)}
            if len(trained) < FEWEST_CLIENTS:
                continue
            cosines = _cosines(tuple(trained.values()), broadcasts[number], knowledge)
            places = [targets.index(sender) for sender in trained]
            evidence[places] += compare_with_others(cosines)
            rounds[places] += 1
        if not rounds.any():
            raise NeedsError(
                f"{self.name} compares clients, and no round has {FEWEST_CLIENTS} updates "
                f"without numbers beyond {LARGEST_CHANGE:g}: see whether training diverged, or "
                "whether updates were recorded as they were sent"
            )
        means = evidence / rounds.clamp(min=1)
        return {
            COHORT: make_claim(targets, knowledge, means, None, stated_examples(view, targets))
        }


def compare_with_others(
    values: Float[Tensor, "clients records"],
) -> Float[Tensor, "clients records"]:
    """Return the log-odds that another client has a smaller value, by the others' values."""
    clients = len(values)
    mean = (values.sum(0) - values) / (clients - 1)
    square = (values.square().sum(0) - values.square()) / (clients - 1)
    deviation = ((square - mean.square()).clamp(min=0) + MIN_VARIANCE).sqrt()
    standardised = (values - mean) / deviation
    below, above = (
        torch.special.log_ndtr(standardised),
        torch.special.log_ndtr(-standardised),
    )
    odds: Tensor = below - above
    return odds


def _cosines(
    updates: Sequence[Weights], start: Weights, knowledge: Knowledge
) -> Float[Tensor, "clients records"]:
    """Return the cosine of each update with minus the gradient of each record at `start`."""
    assert knowledge.build_model is not None
    assert knowledge.recipe is not None
    device = knowledge.compute.own_device
    rows = torch.stack([flatten_weights(one) for one in updates]).to(device)
    directions = torch.nn.functional.normalize(rows.double())
    weights = {name: tensor.to(device) for name, tensor in start.items()}
    records = candidate_records(knowledge).to(device)
    size = min(MAX_RECORDS, MAX_GRADIENT_BYTES // (rows.shape[1] * rows.element_size()))
    parts = []
    for part in torch.split(torch.arange(len(records), device=device), max(1, size)):
        gradients = example_gradients(
            knowledge.build_model, weights, records.take(part), knowledge.recipe
        )
        unit = torch.nn.functional.normalize(gradients.double())
        parts.append(-directions @ unit.T)
    return torch.cat(parts, 1).cpu()
