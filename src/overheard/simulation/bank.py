"""The bank: many virtual clients, trained once, and what every attack wants to know of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.knowledge import Knowledge
from overheard.core.messages import Broadcast, Weights
from overheard.core.parties import SERVER, Party
from overheard.core.view import View
from overheard.learning.threads import one_thread
from overheard.simulation.answers import Answers
from overheard.simulation.chunk import chunks_of
from overheard.simulation.class_pull import ClassPull
from overheard.simulation.ground import Ground, ground_of
from overheard.simulation.last_layer_change import LastLayerChange
from overheard.simulation.probe import Probe
from overheard.simulation.readings import readings
from overheard.simulation.sizes import size_range
from overheard.simulation.update_norms import UpdateNorms
from overheard.simulation.virtual_client import VirtualClient

READ_TOGETHER: tuple[Probe, ...] = (LastLayerChange(), Answers(), ClassPull(), UpdateNorms())
"""Probes of many attacks. Who asks for one has all of them read, so that the next attack, which
asks for another, need not train the virtual clients again: to train costs more than to read."""


@final
@dataclass(frozen=True, slots=True)
class Bank:
    """Virtual clients, or virtual cohorts, and what was read off them.

    Args:
        counts: label counts of what each held, before any defense; a cohort's are the sum of
            its members'.
        halves: 0 or 1: which half of the auxiliary examples it learned from. What was fitted
            to virtual clients of one half has not met the examples of the other.
        recipes: index into `knowledge.recipes()` of how it trained.
        rounds: in which it was read.
        read: by each probe, in each round.

    """

    counts: Int[Tensor, "virtual classes"]
    halves: Int[Tensor, " virtual"]
    recipes: Int[Tensor, " virtual"]
    rounds: tuple[int, ...]
    read: Mapping[Probe, Float[Tensor, "virtual rounds ..."]]

    @property
    def shares(self) -> Float[Tensor, "virtual classes"]:
        """Label shares of each, in float64."""
        counts = self.counts.double()
        return counts / counts.sum(1, keepdim=True)

    @property
    def sizes(self) -> Int[Tensor, " virtual"]:
        """How many examples each held."""
        return self.counts.sum(1)


def build_bank(
    view: View,
    knowledge: Knowledge,
    rounds: Sequence[int],
    probes: Sequence[Probe],
    *,
    members: int | None = None,
) -> Bank:
    """Train virtual clients from each round's broadcast, and read them.

    Ma et al. (Whispers of Data), virtual clients: each restarts from the broadcast in every
    round and is never aggregated. What it holds is drawn from the prior and stays the same.
    What was read before, by this or another attack, is taken from the shelf; the rest is
    trained, read, and saved as soon as it is there. All draws hang on the seed of
    `knowledge.means`. Each worker holds the weights of one chunk at a time: 32 updates, of
    large cohorts up to four times as many as a cohort has members.

    Args:
        view: for the broadcasts, and for what it tells of sizes.
        knowledge: with auxiliary examples, a model and a recipe or guesses at it.
        rounds: each with a broadcast.
        probes: what to read.
        members: None = single clients; else virtual cohorts of so many: the mean update of
            virtual clients, weighted by size. Of more than `chunk.MOST_MEMBERS` so many are
            taken, whose mean varies a little more than that of the cohort which they play.

    Raises:
        NeedsError: if knowledge is missing, or there are too few auxiliary examples.
        PlanError: if a split of the prior cannot be drawn from, or a training runs away.
        WorkerError: if workers die again and again.

    """
    if not probes or (members is not None and members < 1):
        raise ValueError("a bank wants 1 probe or more, and cohorts of 1 member or more")
    ground = ground_of(view, knowledge, rounds)
    sizes = size_range(view, knowledge.prior)
    chunks = chunks_of(
        knowledge, sizes, members, ground.seed, after_server=SERVER not in view.observers
    )
    makers = [own for chunk in chunks for own in chunk.makers()]
    return Bank(
        torch.tensor([_total(own) for own in makers]),
        torch.tensor([own[0].half for own in makers]),
        torch.tensor([own[0].recipe for own in makers]),
        tuple(rounds),
        readings(ground, knowledge, rounds, chunks, _with_companions(probes)),
    )


def read_updates(
    view: View,
    target: Party,
    knowledge: Knowledge,
    rounds: Sequence[int],
    probes: Sequence[Probe],
) -> Mapping[Probe, Float[Tensor, "rounds ..."]]:
    """Read what a target sent as virtual clients are read: same probes, same scenes.

    Args:
        view: in which the target was heard.
        target: who.
        knowledge: as for the bank.
        rounds: in which it was heard and there is a broadcast: see `rounds_heard`.
        probes: what to read.

    """
    updates = view.updates(target)
    missing = [number for number in rounds if number not in updates]
    if missing:
        raise ValueError(f"{target} was not heard in the rounds {missing}")
    ground = ground_of(view, knowledge, rounds)
    return _read(ground, {n: updates[n].delta for n in rounds}, probes)


def read_broadcasts(
    view: View, knowledge: Knowledge, rounds: Sequence[int], probes: Sequence[Probe]
) -> Mapping[Probe, Float[Tensor, "rounds ..."]]:
    """Read the broadcasts themselves: what a client is read as that changes nothing."""
    ground = ground_of(view, knowledge, rounds)
    still = {
        number: {name: torch.zeros_like(w) for name, w in ground.broadcasts[number].items()}
        for number in rounds
    }
    return _read(ground, still, probes)


def rounds_heard(view: View, target: Party) -> tuple[int, ...]:
    """The rounds in which a target was heard and for which there is a broadcast, in order."""
    there = {m.round for m in view.messages if isinstance(m.body, Broadcast)}
    return tuple(number for number in view.heard(target) if number in there)


def cohort_members(view: View, rounds: Sequence[int]) -> int:
    """How many clients an update of `COHORT` is the mean of, the median over rounds."""
    clients = view.cohort_sizes()
    sizes = [clients[number] for number in rounds if clients.get(number)]
    if not sizes:
        raise ValueError(f"nobody is heard of in the rounds {list(rounds)}")
    return max(1, round(median(sizes)))


def _with_companions(probes: Sequence[Probe]) -> tuple[Probe, ...]:
    more = READ_TOGETHER if set(probes) & set(READ_TOGETHER) else ()
    return tuple(dict.fromkeys((*probes, *more)))


def _read(
    ground: Ground, deltas: Mapping[int, Weights], probes: Sequence[Probe]
) -> Mapping[Probe, Tensor]:
    scenes = {number: ground.scene(number) for number in deltas}
    with one_thread():
        return {
            probe: torch.cat(
                [probe.read(scenes[number], [delta]) for number, delta in deltas.items()]
            )
            for probe in probes
        }


def _total(clients: Sequence[VirtualClient]) -> list[int]:
    return [sum(counts) for counts in zip(*(each.counts for each in clients), strict=True)]
