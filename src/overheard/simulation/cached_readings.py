"""Readings of virtual clients, from the cache or by training chunks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.compute_settings import ComputeSettings
from overheard.core.examples import Examples, concatenate_examples
from overheard.core.knowledge import Knowledge
from overheard.core.seeds import Seed
from overheard.learning.workers.job import TensorBundle
from overheard.simulation.augment import augment_examples
from overheard.simulation.auxiliary_split import AuxiliarySplit, Quarters
from overheard.simulation.cache_keys import ReadingKeys, combined_key
from overheard.simulation.cached_jobs import CachedJob, JobInputs, JobResult, run_cached_jobs
from overheard.simulation.chunk import Chunk
from overheard.simulation.job_tensors import (
    pack_background,
    pack_examples,
    pack_history,
    pack_quarters,
)
from overheard.simulation.probe import Probe
from overheard.simulation.read_chunk import ReadChunk
from overheard.simulation.simulation_context import SimulationContext

MIN_PER_CLASS = 100
"""A half with fewer examples of a class is augmented to about this number."""


@final
@dataclass(frozen=True, slots=True)
class TrainingPool:
    """Training examples, and the rows of the two quarters of each half."""

    examples: Examples
    quarters: Quarters


def build_pool(auxiliary: Examples, split: AuxiliarySplit, seed: Seed) -> TrainingPool:
    """Return all quarters, each augmented by itself if a class has too few examples."""
    parts = [
        augment_examples(
            auxiliary.take(rows), MIN_PER_CLASS // 2, seed.child("augment", half, quarter)
        )
        for half, quarters in enumerate(split.quarters)
        for quarter, rows in enumerate(quarters)
    ]
    examples = concatenate_examples(parts)
    first, second, third, fourth = torch.split(
        torch.arange(len(examples)), list(map(len, parts))
    )
    return TrainingPool(examples, ((first, second), (third, fourth)))


DESCRIPTION = "virtual clients"
"""The description for `ComputeSettings.on_progress`."""

READING_KEY = "read"
"""The name of the one tensor that is cached under a key."""


def collect_readings(
    context: SimulationContext,
    knowledge: Knowledge,
    rounds: Sequence[int],
    chunks: Sequence[Chunk],
    probes: Sequence[Probe],
) -> Mapping[Probe, Float[Tensor, "virtual rounds ..."]]:
    """Return the readings of each probe on each virtual client, or cohort, in each round.

    One job is one chunk in one round. If some of its readings are not cached, it is trained
    again for those alone, with the same results bit for bit. Readings are cached at once.
    """
    keys = ReadingKeys(knowledge, context.build_model, context.auxiliary, context.seed)
    table = _ReadingsTable(chunks, rounds)
    names = [repr(chunk) for chunk in chunks]
    jobs = []
    for number in rounds:
        round_key = _round_key(keys, context, number)
        for chunk, name in zip(chunks, names, strict=True):
            reading_keys = tuple(keys.reading_key(round_key, name, probe) for probe in probes)
            job = partial(_make_job, context, knowledge, number, chunk, probes)
            jobs.append(CachedJob(number, reading_keys, job))
    inputs = JobInputs(lambda: _shared_bundles(context, knowledge), context.broadcasts)

    def add_result(job: int, probe: int, result: JobResult) -> None:
        number, chunk = divmod(job, len(chunks))
        table.add(probes[probe], rounds[number], chunk, result[READING_KEY])

    compute = _compute(context, knowledge)
    run_cached_jobs(DESCRIPTION, jobs, inputs, compute, add_result, _reading)
    return table.readings


def _compute(context: SimulationContext, knowledge: Knowledge) -> ComputeSettings:
    """Return the compute settings with the device of the simulation."""
    return replace(knowledge.compute, device=context.device)


def _round_key(keys: ReadingKeys, context: SimulationContext, number: int) -> str:
    """Return the key of a round, with all that corrections depend on."""
    key = keys.round_key(number, context.broadcasts[number])
    if not context.is_corrected(number):
        return key
    packed = pack_history({n: context.history[n] for n in (number - 1, number)})
    parts = (part for item in packed.items() for part in item)
    return combined_key(key, repr(context.algorithm), *parts)


def _reading(tensors: Mapping[str, Tensor], position: int) -> JobResult:
    return {READING_KEY: tensors[str(position)]}


@final
class _ReadingsTable:
    """Readings by probe, filled in any order."""

    def __init__(self, chunks: Sequence[Chunk], rounds: Sequence[int]) -> None:
        self.readings: dict[Probe, Tensor] = {}
        self._rounds = {number: position for position, number in enumerate(rounds)}
        self._starts = [0]
        for chunk in chunks:
            self._starts.append(self._starts[-1] + len(chunk.clients_per_reading()))

    def add(self, probe: Probe, number: int, chunk: int, reading: Tensor) -> None:
        begin, end = self._starts[chunk : chunk + 2]
        if len(reading) != end - begin:
            raise ValueError(
                f"{probe!r} returned {len(reading)} readings for {end - begin} clients"
            )
        if probe not in self.readings:
            shape = (self._starts[-1], len(self._rounds), *reading.shape[1:])
            self.readings[probe] = reading.new_zeros(shape)
        self.readings[probe][begin:end, self._rounds[number]] = reading


def _make_job(
    context: SimulationContext,
    knowledge: Knowledge,
    number: int,
    chunk: Chunk,
    probes: Sequence[Probe],
    missing: tuple[int, ...],
) -> ReadChunk:
    return ReadChunk(
        number,
        chunk,
        context.classes,
        context.build_model,
        knowledge.candidate_recipes(),
        context.recipe,
        knowledge.defenses or (),
        context.seed,
        _compute(context, knowledge).job_device,
        tuple(probes[position] for position in missing),
        context.algorithm if context.is_corrected(number) else None,
    )


def _shared_bundles(
    context: SimulationContext, knowledge: Knowledge
) -> tuple[TensorBundle, ...]:
    """Return the inputs that jobs of all rounds share."""
    pool = build_pool(context.auxiliary, context.auxiliary_split, context.seed.child("pool"))
    examples = {
        **pack_examples("pool", pool.examples),
        **pack_quarters(pool.quarters),
        **pack_examples("auxiliary", context.auxiliary),
        "held out": context.auxiliary_split.held_out,
    }
    return (
        TensorBundle(examples),
        TensorBundle(pack_background(knowledge)),
        TensorBundle(pack_history(context.history)),
    )
