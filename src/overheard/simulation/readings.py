"""Has chunks trained and read, except for what stands on the shelf already."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from typing import final

from jaxtyping import Float
from torch import Tensor

from overheard.core.knowledge import Knowledge
from overheard.learning.workers.job import Bundle, WorkerTask
from overheard.simulation.chunk import Chunk
from overheard.simulation.ground import Ground
from overheard.simulation.keys import Keys
from overheard.simulation.pool import pool_of
from overheard.simulation.probe import Probe
from overheard.simulation.read_chunk import BACKGROUND, BROADCAST, ReadChunk
from overheard.simulation.workplace import carry_out

WHAT = "virtual clients"
"""As what their training is told to `Means.on_progress`."""

READ = "read"
"""The name of the one tensor that the shelf keeps under a key."""


def readings(
    ground: Ground,
    knowledge: Knowledge,
    rounds: Sequence[int],
    chunks: Sequence[Chunk],
    probes: Sequence[Probe],
) -> Mapping[Probe, Float[Tensor, "virtual rounds ..."]]:
    """What each probe reads off each virtual client, or cohort, in each round.

    One piece of work is one chunk in one round. A piece of which some probe was not read yet
    is trained again for those probes alone, to the same bits; what is read is saved at once.
    """
    means, total = knowledge.means, len(rounds) * len(chunks)
    keys = Keys(knowledge, ground.build_model, ground.auxiliary, ground.seed)
    table = _Table(chunks, rounds)
    gaps: list[_Gap] = []
    done = 0
    names = [repr(chunk) for chunk in chunks]
    for number in rounds:
        part = keys.round(number, ground.broadcasts[number])
        for chunk, name in enumerate(names):
            missing = {}
            for probe in probes:
                key = keys.reading(part, name, probe)
                kept = means.shelf.load(key)
                if kept is None:
                    missing[probe] = key
                else:
                    table.enter(probe, number, chunk, kept[READ])
            if missing:
                gaps.append(_Gap(number, chunk, missing))
            else:
                done += 1
                means.on_progress(WHAT, done, total)
    if not gaps:
        # Nobody is called for nothing: to reach a cluster may take long.
        return table.read
    tasks = _tasks(ground, knowledge, chunks, gaps)
    # Closed at once when something goes wrong here: workers then end before anything else.
    with closing(carry_out(tasks, len(gaps), means)) as work:
        for piece in work:
            gap = gaps[piece.number]
            for place, (probe, key) in enumerate(gap.missing.items()):
                read = piece.tensors[str(place)]
                means.shelf.save(key, {READ: read})
                table.enter(probe, gap.round, gap.chunk, read)
            done += 1
            means.on_progress(WHAT, done, total)
    return table.read


@final
@dataclass(frozen=True, slots=True)
class _Gap:
    """Probes that have not read this chunk in this round, and the keys that wait for them."""

    round: int
    chunk: int
    missing: Mapping[Probe, str]


@final
class _Table:
    """Readings as they come, whatever their order."""

    def __init__(self, chunks: Sequence[Chunk], rounds: Sequence[int]) -> None:
        self.read: dict[Probe, Tensor] = {}
        self._rounds = {number: place for place, number in enumerate(rounds)}
        self._starts = [0]
        for chunk in chunks:
            self._starts.append(self._starts[-1] + len(chunk.makers()))

    def enter(self, probe: Probe, number: int, chunk: int, read: Tensor) -> None:
        begin, end = self._starts[chunk : chunk + 2]
        if len(read) != end - begin:
            raise ValueError(f"{probe!r} gave {len(read)} readings of {end - begin} clients")
        if probe not in self.read:
            shape = (self._starts[-1], len(self._rounds), *read.shape[1:])
            self.read[probe] = read.new_zeros(shape)
        self.read[probe][begin:end, self._rounds[number]] = read


def _tasks(
    ground: Ground, knowledge: Knowledge, chunks: Sequence[Chunk], gaps: Sequence[_Gap]
) -> Iterator[WorkerTask]:
    pool = pool_of(ground.auxiliary, ground.parting, ground.seed.child("pool"))
    examples = Bundle(
        {
            "pool/inputs": pool.examples.inputs,
            "pool/labels": pool.examples.labels,
            "half/0": pool.halves[0],
            "half/1": pool.halves[1],
            "auxiliary/inputs": ground.auxiliary.inputs,
            "auxiliary/labels": ground.auxiliary.labels,
            "held out": ground.parting.held_out,
        }
    )
    public = _background(knowledge)
    for number, several in groupby(gaps, lambda gap: gap.round):
        weights = ground.broadcasts[number].items()
        broadcast = Bundle({BROADCAST + name: weight for name, weight in weights})
        for gap in several:
            job = ReadChunk(
                number,
                chunks[gap.chunk],
                ground.classes,
                ground.build_model,
                knowledge.recipes(),
                ground.recipe,
                knowledge.defenses or (),
                ground.seed,
                # Machines of a cluster need not have the device of this one.
                ground.device if knowledge.means.cluster is None else "cpu",
                tuple(gap.missing),
            )
            yield WorkerTask(job, (examples, public, broadcast))


def _background(knowledge: Knowledge) -> Bundle:
    """What known defenses may mix in; nothing where nobody would."""
    background = knowledge.background
    if background is None or not knowledge.defenses:
        return Bundle({})
    return Bundle(dict(zip(BACKGROUND, (background.inputs, background.labels), strict=True)))
