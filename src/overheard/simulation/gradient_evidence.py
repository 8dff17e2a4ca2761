"""The evidence of each candidate record in updates: fit and strength of its gradient."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples, concatenate_examples
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.messages import Weights
from overheard.core.parties import Party
from overheard.core.recipe import Recipe
from overheard.core.view import View
from overheard.learning.example_gradients import flatten_weights
from overheard.learning.initialization import fresh_model
from overheard.learning.layer_gradients import Gradients, LayerNames, layer_gradients
from overheard.learning.threads import single_thread
from overheard.learning.workers.job import Job, TensorBundle
from overheard.simulation.cache_keys import broadcast_key, combined_key, network_text
from overheard.simulation.cached_jobs import (
    JobInputs,
    JobResult,
    run_cached_jobs,
    single_result_job,
)
from overheard.simulation.job_tensors import pack_examples, unpack_broadcast, unpack_examples
from overheard.simulation.whitening import Factors, Whitening, fit_and_strength

PROGRESS_LABEL = "whitened gradients of candidate records"
"""The label of the computation in `ComputeSettings.on_progress`."""

UPDATES_PREFIX = "updates/"
"""Prefix of the names of the senders' updates: (senders, ...) each."""

RECORDS_PER_PASS = 256
"""Records whose gradients are computed at once, which bounds their activations."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class GradientEvidence:
    """How well the updates of one round fit the gradient of each candidate record.

    The log-likelihood ratio that a sender trained on a record with weight s is
    s fit - s^2 strength / 2, and fit / sqrt(strength) has about variance 1 if it did not.
    Rounds and senders add up: sum fits, and sum strengths.

    Args:
        fit: N, by sender, in the order in which senders were given.
        strength: S; it says before any truth whose membership would show.

    """

    fit: Float[Tensor, "senders records"]
    strength: Float[Tensor, "senders records"]


def compute_gradient_evidence(
    view: View, knowledge: Knowledge, senders_by_round: Mapping[int, Sequence[Party]]
) -> dict[int, GradientEvidence]:
    """Compute the evidence of each candidate record in the updates of each round.

    See `whitening.fit_and_strength`. The covariance comes of auxiliary and candidate records
    together, or of candidates alone, so members and non-members are treated alike. Gradients
    are taken at the broadcast. Results are cached.

    Args:
        view: provides broadcasts and updates; a sender may be `COHORT`.
        knowledge: with candidates, a model and a recipe; auxiliary examples are optional.
        senders_by_round: by round, the senders whose updates are read; one or more each.

    Raises:
        WorkerError: if workers fail repeatedly.

    """
    return {
        number: _evidence_of_round(view, knowledge, number, senders)
        for number, senders in senders_by_round.items()
    }


def _evidence_of_round(
    view: View, knowledge: Knowledge, number: int, senders: Sequence[Party]
) -> GradientEvidence:
    assert knowledge.build_model is not None
    assert knowledge.recipe is not None
    model = fresh_model(knowledge.build_model, knowledge.compute.seed)
    start = view.broadcasts()[number]
    deltas = [view.updates(sender)[number].delta for sender in senders]
    updates = {name: torch.stack([delta[name] for delta in deltas]) for name in start}
    records, auxiliary = candidate_records(knowledge), knowledge.auxiliary
    job = EvidenceJob(
        number, knowledge.build_model, knowledge.recipe, knowledge.compute.job_device
    )
    known = () if auxiliary is None else auxiliary.tensors()
    common = combined_key(
        f"gradient evidence {knowledge.recipe!r} {auxiliary is None}",
        network_text(model),
        *known,
        *records.tensors(),
        *[flatten_weights(delta) for delta in deltas],
    )
    results: list[JobResult] = []
    run_cached_jobs(
        PROGRESS_LABEL,
        [single_result_job(number, broadcast_key(common, number, start), job)],
        JobInputs(
            lambda: (
                TensorBundle(pack_examples("records", records)),
                TensorBundle(
                    {} if auxiliary is None else pack_examples("auxiliary", auxiliary)
                ),
                TensorBundle({UPDATES_PREFIX + name: one for name, one in updates.items()}),
            ),
            {number: start},
        ),
        knowledge.compute,
        lambda _, __, result: results.append(result),
    )
    return GradientEvidence(results[0]["fit"], results[0]["strength"])


@final
@dataclass(frozen=True, slots=True)
class EvidenceJob(Job):
    """Compute fit and strength of each record in the updates of one round.

    The job reads the broadcast, the examples "records" and, if there are any, "auxiliary", and
    the updates under `UPDATES_PREFIX`. It returns the tensors of `GradientEvidence`, in
    float64.

    Args:
        round: the round.
        build_model: builds the architecture.
        recipe: the clients' training recipe.
        device: the device to compute on.

    """

    round: int
    build_model: BuildModel
    recipe: Recipe
    device: str

    def run(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Compute on one core, so that the bits do not depend on the machine."""
        start = {name: one.to(self.device) for name, one in unpack_broadcast(tensors).items()}
        records = unpack_examples(tensors, "records").to(self.device)
        known = (
            concatenate_examples(
                (unpack_examples(tensors, "auxiliary").to(self.device), records)
            )
            if "auxiliary/inputs" in tensors
            else records
        )
        updates = {
            name.removeprefix(UPDATES_PREFIX): one.to(self.device)
            for name, one in tensors.items()
            if name.startswith(UPDATES_PREFIX)
        }
        with single_thread():
            gradients = list(self._gradients(start, known))
            whitenings = {
                names: Whitening.of_factors(
                    Factors.of_records(part[names] for part in gradients)
                )
                for names in gradients[0]
            }
            found = [
                self._evidence(part, whitenings, updates)
                for part in self._gradients(start, records)
            ]
        return {
            "fit": torch.cat([fit for fit, _ in found], 1).double().cpu(),
            "strength": torch.cat([strength for _, strength in found], 1).double().cpu(),
        }

    def _gradients(
        self, weights: Weights, records: Examples
    ) -> Iterator[dict[LayerNames, Gradients]]:
        for rows in torch.split(torch.arange(len(records)), RECORDS_PER_PASS):
            part = records.take(rows.to(self.device))
            yield layer_gradients(self.build_model, weights, part, self.recipe)

    def _evidence(
        self,
        gradients: Mapping[LayerNames, Gradients],
        whitenings: Mapping[LayerNames, Whitening],
        updates: Mapping[str, Tensor],
    ) -> tuple[Tensor, Tensor]:
        """Return the sum of fits and strengths over all layers."""
        parts = [
            fit_and_strength(of_layer, whitenings[names], _matrices(names, updates))
            for names, of_layer in gradients.items()
        ]
        fits, strengths = zip(*parts, strict=True)
        return torch.stack(fits).sum(0), torch.stack(strengths).sum(0)


def _matrices(
    names: LayerNames, updates: Mapping[str, Tensor]
) -> Float[Tensor, "updates outputs inputs"]:
    """Return the layer's part of all updates."""
    return torch.stack(
        [
            names.matrix_of({name: one[place] for name, one in updates.items()})
            for place in range(len(updates[names.weight]))
        ]
    )
