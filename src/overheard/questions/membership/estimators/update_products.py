"""Inner products of updates and record gradients in each round, computed once and cached."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.parties import Party
from overheard.core.view import View
from overheard.learning.example_gradients import flatten_weights
from overheard.learning.initialization import fresh_model
from overheard.learning.workers.job import TensorBundle
from overheard.questions.membership.estimators.shadow_count import shadow_size
from overheard.questions.membership.estimators.shadow_logits import (
    defense_key_parts,
    shadow_tensors,
)
from overheard.questions.membership.estimators.update_products_job import (
    UPDATES_TENSOR,
    UpdateProductsJob,
)
from overheard.simulation.cache_keys import broadcast_key, combined_key, network_text
from overheard.simulation.cached_jobs import (
    JobInputs,
    JobResult,
    run_cached_jobs,
    single_result_job,
)
from overheard.simulation.settled_device import with_settled_device

PROGRESS_LABEL = "gradients of candidate records"
"""The label of the computation in `ComputeSettings.on_progress`."""

MAX_SHADOW_BYTES = 2**30
"""Largest size of all shadow updates of a round; large models get fewer of them."""

DEFAULT_TRAININGS = 2
"""Local models that train on each record, where that is affordable. On a tuning seed two raise
the AUC from .660 to .702 (ten local epochs, local DP); four raise it to .707."""

MAX_TRAINING_WORK = 10**10
"""The most passes times parameters that one training on each record may take in a round: about
4 seconds of one core for an MLP."""

FEWEST_EPOCHS = 2
"""Fewer local epochs need no training on each record: see `default_trainings`."""

MIN_SHADOWS = 8
"""The fewest shadow models, however large the model is."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class ShadowProducts:
    """Products of the updates of shadow models in one round, each minus their mean.

    Args:
        is_member: which model trained on which record.
        among_shadows: inner products of the updates with each other.
        shadow_records: inner products of the updates with the directions of the records.
        record_squares: squared length of each record's direction.
        parameters: number of parameters of the model.

    """

    is_member: Bool[Tensor, "models records"]
    among_shadows: Float[Tensor, "models models"]
    shadow_records: Float[Tensor, "models records"]
    record_squares: Float[Tensor, " records"]
    parameters: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class UpdateProducts:
    """Products of other updates in one round, each minus the mean of the shadow models' ones.

    Args:
        with_shadows: inner products with the updates of the shadow models.
        with_records: inner products with the directions of the records.
        squares: squared length of each update.

    """

    with_shadows: Float[Tensor, "updates models"]
    with_records: Float[Tensor, "updates records"]
    squares: Float[Tensor, " updates"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class RoundProducts:
    """The products of one round.

    Args:
        shadows: those of the shadow models.
        targets: by target, those of its update.

    """

    shadows: ShadowProducts
    targets: Mapping[Party, UpdateProducts]


def compute_update_products(
    view: View,
    knowledge: Knowledge,
    targets_by_round: Mapping[int, Sequence[Party]],
    models: int,
    trainings: int | None = 0,
) -> dict[int, RoundProducts]:
    """Compute the products of each round; see `UpdateProductsJob`.

    Args:
        view: provides broadcasts, updates and reported sizes.
        knowledge: with auxiliary examples, candidates, a model and a recipe.
        targets_by_round: by round, the targets whose updates are compared; one or more each.
        models: shadow models per round; fewer if their updates exceed `MAX_SHADOW_BYTES`.
        trainings: number of local models a round that train on each record; None =
            `default_trainings`.

    Raises:
        NeedsError: if there are fewer than two examples to draw from, or fewer than two
            auxiliary examples and `trainings` above 0.
        PlanError: if a training diverges.
        WorkerError: if workers fail repeatedly.

    """
    return {
        number: _round_products(view, knowledge, number, targets, models, trainings)
        for number, targets in targets_by_round.items()
    }


def default_trainings(records: int, examples: int, epochs: int, parameters: int) -> int:
    """Return the number of trainings on each record, where none is stated.

    In a single epoch a record acts once, and its gradient tells how: on tuning seeds trainings
    changed the AUC by -.024 to .008 (SGD of 6 and of 30 steps, Adam). With two epochs they
    raised it by .013 to .033, with ten by .011 to .052.

    Args:
        records: number of candidate records.
        examples: number of examples of a client.
        epochs: local epochs.
        parameters: number of parameters of the model.

    """
    if epochs < FEWEST_EPOCHS:
        return 0
    work = records * examples * epochs * parameters
    return DEFAULT_TRAININGS if work <= MAX_TRAINING_WORK else 0


def _round_products(
    view: View,
    knowledge: Knowledge,
    number: int,
    targets: Sequence[Party],
    models: int,
    trainings: int | None,
) -> RoundProducts:
    assert knowledge.build_model is not None
    assert knowledge.recipe is not None
    broadcasts = view.broadcasts()
    updates = torch.stack(
        [flatten_weights(view.updates(target)[number].delta) for target in targets]
    )
    parameters, bytes_each = updates.shape[1], updates.shape[1] * updates.element_size()
    size = shadow_size(view, knowledge, include_candidates=True)
    records, epochs = candidate_records(knowledge), knowledge.recipe.epochs
    if trainings is None:
        trainings = default_trainings(len(records), size, epochs, parameters)
    models = min(models, max(MIN_SHADOWS, MAX_SHADOW_BYTES // bytes_each))
    settings = with_settled_device(
        knowledge,
        records.inputs,
        models + trainings * len(records),
        size,
        are_jobs=False,
        part="shadow models",
    ).compute
    job = UpdateProductsJob(
        number,
        models,
        size,
        knowledge.build_model,
        knowledge.recipe,
        settings.seed.child("update products"),
        settings.job_device,
        knowledge.defenses or (),
        trainings,
    )
    shared = shadow_tensors(knowledge)
    parts = [part for bundle in shared for part in bundle.tensors.values()]
    common = combined_key(
        repr((job.models, job.size, job.recipe, job.seed, job.trainings)),
        network_text(fresh_model(knowledge.build_model, job.seed)),
        *parts,
        *defense_key_parts(knowledge),
        updates,
    )
    results: list[JobResult] = []
    run_cached_jobs(
        PROGRESS_LABEL,
        [single_result_job(number, broadcast_key(common, number, broadcasts[number]), job)],
        JobInputs(
            lambda: (*shared, TensorBundle({UPDATES_TENSOR: updates})),
            {number: broadcasts[number]},
        ),
        settings,
        lambda _, __, result: results.append(result),
    )
    return _unpack(results[0], targets, parameters)


def _unpack(result: JobResult, targets: Sequence[Party], parameters: int) -> RoundProducts:
    shadows = ShadowProducts(
        result["is_member"],
        result["among_shadows"],
        result["shadow_records"],
        result["record_squares"],
        parameters,
    )
    rows = {target: slice(row, row + 1) for row, target in enumerate(targets)}
    return RoundProducts(
        shadows,
        {
            target: UpdateProducts(
                result["with_shadows"][row],
                result["with_records"][row],
                result["squares"][row],
            )
            for target, row in rows.items()
        },
    )
