"""Logits of shadow models on the candidate records, trained once and cached."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.view import View
from overheard.learning.initialization import fresh_model
from overheard.learning.workers.job import TensorBundle
from overheard.questions.membership.estimators.shadow_count import shadow_size
from overheard.questions.membership.estimators.shadow_training_job import (
    IS_MEMBER_TENSOR,
    LOGITS_TENSOR,
    ShadowTrainingJob,
)
from overheard.simulation.cache_keys import broadcast_key, combined_key, network_text
from overheard.simulation.cached_jobs import (
    CachedJob,
    JobInputs,
    JobResult,
    run_cached_jobs,
    single_result_job,
)
from overheard.simulation.chunk import CHUNK
from overheard.simulation.job_tensors import pack_background, pack_examples
from overheard.simulation.settled_device import with_settled_device

PROGRESS_LABEL = "shadow models"
"""The label of their training in `ComputeSettings.on_progress`."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class ShadowLogits:
    """Logits of shadow models on the candidate records.

    Args:
        rounds: by round, the logits of models that started from its broadcast.
        is_member: whether each model trained on each record, the same in all rounds.

    """

    rounds: Mapping[int, Float[Tensor, "models records classes"]]
    is_member: Bool[Tensor, "models records"]


def compute_shadow_logits(
    view: View,
    knowledge: Knowledge,
    rounds: Sequence[int],
    count: int,
    *,
    include_candidates: bool,
) -> ShadowLogits:
    """Train shadow models at the broadcasts of these rounds and compute their logits.

    Each model trains on as many examples as clients report (the median), or on half of the
    available examples if no size is reported or fewer are available. They are drawn from the
    auxiliary examples and, if `include_candidates`, from the candidate records, so that each
    record is a member of some models and not of others. The defenses that the attacker knows
    act on the examples and updates of each model.

    One job trains `CHUNK` models in one round and is cached when it is done. Calls with fewer
    rounds or more models reuse it. All draws depend on the seed of `knowledge.compute`.

    Args:
        view: provides the broadcasts and the reported sizes.
        knowledge: with auxiliary examples, candidates, a model and a recipe.
        rounds: one or more rounds, each with a broadcast.
        count: number of models per round.
        include_candidates: whether the models also train on candidate records.

    Raises:
        NeedsError: if there are fewer than two examples to draw from.
        PlanError: if a training diverges.
        WorkerError: if workers fail repeatedly.

    """
    size = shadow_size(view, knowledge, include_candidates=include_candidates)
    records = candidate_records(knowledge).inputs
    knowledge = with_settled_device(
        knowledge, records, count, size, read=len(records), part="shadow models"
    )
    jobs = _shadow_jobs(view, knowledge, rounds, count, include_candidates=include_candidates)
    results: dict[int, JobResult] = {}

    def save_result(place: int, _: int, answer: JobResult) -> None:
        results[place] = answer

    inputs = JobInputs(lambda: shadow_tensors(knowledge), view.broadcasts())
    run_cached_jobs(PROGRESS_LABEL, jobs, inputs, knowledge.compute, save_result)
    by_round: dict[int, list[JobResult]] = {number: [] for number in rounds}
    for place, job in enumerate(jobs):
        by_round[job.round].append(results[place])
    return ShadowLogits(
        {
            number: torch.cat([chunk[LOGITS_TENSOR] for chunk in chunks])
            for number, chunks in by_round.items()
        },
        torch.cat([chunk[IS_MEMBER_TENSOR] for chunk in by_round[rounds[0]]]),
    )


def _shadow_jobs(
    view: View,
    knowledge: Knowledge,
    rounds: Sequence[int],
    count: int,
    *,
    include_candidates: bool,
) -> list[CachedJob]:
    assert knowledge.auxiliary is not None
    assert knowledge.recipe is not None
    assert knowledge.build_model is not None
    means, auxiliary, records = (
        knowledge.compute,
        knowledge.auxiliary,
        candidate_records(knowledge),
    )
    size = shadow_size(view, knowledge, include_candidates=include_candidates)
    defenses = knowledge.defenses or ()
    seed, broadcasts = means.seed.child("shadow models"), view.broadcasts()
    common = combined_key(
        repr((knowledge.recipe, seed, size, include_candidates)),
        network_text(fresh_model(knowledge.build_model, seed)),
        *auxiliary.tensors(),
        *records.tensors(),
        *defense_key_parts(knowledge),
    )
    jobs = []
    for number in rounds:
        part = broadcast_key(common, number, broadcasts[number])
        for begin in range(0, count, CHUNK):
            numbers = range(begin, min(begin + CHUNK, count))
            job = ShadowTrainingJob(
                number,
                numbers,
                size,
                include_candidates,
                knowledge.build_model,
                knowledge.recipe,
                seed,
                means.job_device,
                defenses,
            )
            jobs.append(single_result_job(number, combined_key(part, repr(numbers)), job))
    return jobs


def shadow_tensors(knowledge: Knowledge) -> tuple[TensorBundle, ...]:
    """Return the tensors that the jobs of all rounds read."""
    assert knowledge.auxiliary is not None
    auxiliary = pack_examples("auxiliary", knowledge.auxiliary)
    records = pack_examples("records", candidate_records(knowledge))
    return (TensorBundle(auxiliary | records | pack_background(knowledge)),)


def defense_key_parts(knowledge: Knowledge) -> tuple[str | Tensor, ...]:
    """Return what known defenses add to the cache key of a job: nothing if none is known."""
    if not knowledge.defenses:
        return ()
    background = knowledge.background
    public = () if background is None else background.tensors()
    return (repr(knowledge.defenses), *public)
