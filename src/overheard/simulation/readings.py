"""Readings of virtual clients, from the cache or by training chunks."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import final

from jaxtyping import Float
from torch import Tensor

from overheard.core.knowledge import Knowledge
from overheard.learning.workers.job import Bundle
from overheard.simulation.cached_jobs import Answer, CachedJob, JobInputs, do_cached
from overheard.simulation.chunk import Chunk
from overheard.simulation.ground import Ground
from overheard.simulation.job_tensors import background_tensors, named_examples
from overheard.simulation.keys import Keys
from overheard.simulation.pool import pool_of
from overheard.simulation.probe import Probe
from overheard.simulation.read_chunk import ReadChunk

WHAT = "virtual clients"
"""The description for `ComputeSettings.on_progress`."""

READ = "read"
"""The name of the one tensor that is cached under a key."""


def readings(
    ground: Ground,
    knowledge: Knowledge,
    rounds: Sequence[int],
    chunks: Sequence[Chunk],
    probes: Sequence[Probe],
) -> Mapping[Probe, Float[Tensor, "virtual rounds ..."]]:
    """Return the readings of each probe on each virtual client, or cohort, in each round.

    One job is one chunk in one round. If some of its readings are not cached, it is trained
    again for those alone, with the same results bit for bit. Readings are cached at once.
    """
    keys = Keys(knowledge, ground.build_model, ground.auxiliary, ground.seed)
    table = _Table(chunks, rounds)
    names = [repr(chunk) for chunk in chunks]
    jobs = []
    for number in rounds:
        round_key = keys.round(number, ground.broadcasts[number])
        for chunk, name in zip(chunks, names, strict=True):
            reading_keys = tuple(keys.reading(round_key, name, probe) for probe in probes)
            job = partial(_job, ground, knowledge, number, chunk, probes)
            jobs.append(CachedJob(number, reading_keys, job))
    inputs = JobInputs(lambda: _shared(ground, knowledge), ground.broadcasts)

    def add_result(job: int, probe: int, result: Answer) -> None:
        number, chunk = divmod(job, len(chunks))
        table.enter(probes[probe], rounds[number], chunk, result[READ])

    do_cached(WHAT, jobs, inputs, knowledge.compute, add_result, _reading)
    return table.read


def _reading(tensors: Mapping[str, Tensor], position: int) -> Answer:
    return {READ: tensors[str(position)]}


@final
class _Table:
    """Readings by probe, filled in any order."""

    def __init__(self, chunks: Sequence[Chunk], rounds: Sequence[int]) -> None:
        self.read: dict[Probe, Tensor] = {}
        self._rounds = {number: position for position, number in enumerate(rounds)}
        self._starts = [0]
        for chunk in chunks:
            self._starts.append(self._starts[-1] + len(chunk.makers()))

    def enter(self, probe: Probe, number: int, chunk: int, read: Tensor) -> None:
        begin, end = self._starts[chunk : chunk + 2]
        if len(read) != end - begin:
            raise ValueError(
                f"{probe!r} returned {len(read)} readings for {end - begin} clients"
            )
        if probe not in self.read:
            shape = (self._starts[-1], len(self._rounds), *read.shape[1:])
            self.read[probe] = read.new_zeros(shape)
        self.read[probe][begin:end, self._rounds[number]] = read


def _job(
    ground: Ground,
    knowledge: Knowledge,
    number: int,
    chunk: Chunk,
    probes: Sequence[Probe],
    missing: tuple[int, ...],
) -> ReadChunk:
    return ReadChunk(
        number,
        chunk,
        ground.classes,
        ground.build_model,
        knowledge.candidate_recipes(),
        ground.recipe,
        knowledge.defenses or (),
        ground.seed,
        knowledge.compute.job_device,
        tuple(probes[position] for position in missing),
    )


def _shared(ground: Ground, knowledge: Knowledge) -> tuple[Bundle, ...]:
    """Return the inputs that jobs of all rounds share."""
    pool = pool_of(ground.auxiliary, ground.parting, ground.seed.child("pool"))
    examples = {
        **named_examples("pool", pool.examples),
        "half/0": pool.halves[0],
        "half/1": pool.halves[1],
        **named_examples("auxiliary", ground.auxiliary),
        "held out": ground.parting.held_out,
    }
    return Bundle(examples), Bundle(background_tensors(knowledge))
