"""The client whose model has the smallest loss on a record: Hu et al. 2021."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.messages import apply_update
from overheard.core.needs import BROADCASTS, CANDIDATES, MODEL, UPDATES
from overheard.core.parties import COHORT, Party
from overheard.core.recipe import LOSSES_OF_TASKS
from overheard.core.seeds import Seed
from overheard.core.settings import Positive
from overheard.core.view import View
from overheard.learning.evaluate import logits_of_models
from overheard.learning.loss import per_example_loss
from overheard.questions.source_inference.claim import RecordSources
from overheard.questions.source_inference.estimators.observed_rounds import (
    make_claim,
    rounds_to_read,
    stated_examples,
)


@final
@dataclass(frozen=True, slots=True)
class LossSource(Attack[RecordSources]):
    """Claims that the client whose updated model has the smallest loss holds the record.

    The loss is that of the task, averaged over the rounds in which the client sent an update.
    The probability of a client is proportional to exp(-loss); the paper names a client only,
    so the probabilities are Overheard's. Whether any client holds the record is not estimated:
    no client has probability 0.5.

    The loss also tells which client holds more records of the label. So it is above chance
    where clients differ in their labels, whether or not it recognises any record.

    Args:
        most_rounds: maximum number of rounds to read, evenly spaced from first to last.

    """

    most_rounds: Positive = 5

    name: ClassVar[str] = "loss_source"
    claim_type: ClassVar = RecordSources
    needs: ClassVar = frozenset({UPDATES, BROADCASTS, MODEL, CANDIDATES})
    source: ClassVar[str] = (
        "Hu et al. 2021 (Source Inference Attacks in Federated Learning, ICDM), section III, "
        "with equal prior probabilities of the clients"
    )
    is_joint: ClassVar[bool] = True

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, RecordSources]:
        """Claim the softmax of minus the mean loss.

        Raises:
            NeedsError: if there are fewer than two targets.

        """
        assert knowledge.build_model is not None
        records = candidate_records(knowledge)
        loss = LOSSES_OF_TASKS[knowledge.kind][0]
        losses = torch.zeros(len(targets), len(records), dtype=torch.float64)
        rounds, broadcasts = torch.zeros(len(targets), 1), view.broadcasts()
        for number, senders in rounds_to_read(view, targets, self.most_rounds).items():
            start = broadcasts[number]
            models = (
                apply_update(start, view.updates(sender)[number].delta) for sender in senders
            )
            outputs = logits_of_models(
                knowledge.build_model,
                models,
                records.inputs,
                device=knowledge.compute.device,
                count=len(senders) * knowledge.compute.repeats,
            )
            for sender, logits in zip(senders, outputs, strict=True):
                place = targets.index(sender)
                rounds[place] += 1
                losses[place] += per_example_loss(
                    logits.double(), records.loss_labels.cpu(), loss, 0.0
                )
        examples = stated_examples(view, targets)
        return {COHORT: make_claim(targets, knowledge, -losses / rounds, None, examples)}
