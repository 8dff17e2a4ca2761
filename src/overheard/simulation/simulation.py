"""The simulation of virtual clients, trained once, and the readings of probes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Broadcast, Weights
from overheard.core.parties import SERVER, Party
from overheard.core.view import View
from overheard.learning.precision import computing
from overheard.learning.threads import single_thread
from overheard.simulation.auxiliary_logits import AuxiliaryLogits
from overheard.simulation.cached_readings import collect_readings
from overheard.simulation.chunk import draw_chunks
from overheard.simulation.class_gradient_fit import ClassGradientFit
from overheard.simulation.client_sizes import size_range
from overheard.simulation.last_layer_change import LastLayerChange
from overheard.simulation.probe import Probe
from overheard.simulation.simulation_context import SimulationContext, build_context
from overheard.simulation.unexplained_update import UnexplainedUpdate
from overheard.simulation.update_norms import InputNorms, UpdateNorms
from overheard.simulation.virtual_client import VirtualClient

SHARED_PROBES: tuple[Probe, ...] = (
    LastLayerChange(),
    AuxiliaryLogits(),
    ClassGradientFit(),
    UpdateNorms(),
    UnexplainedUpdate(),
    InputNorms(),
)
"""Probes of many attacks. If one is requested, all of them are read, so that the next attack
need not train the virtual clients again: training costs more than reading."""


@final
@dataclass(frozen=True, slots=True)
class Simulation:
    """Virtual clients, or virtual cohorts, and the readings of their updates.

    Args:
        counts: label counts of each, before any defense; those of a cohort are the sum over its
            members.
        halves: 0 or 1: the half of the auxiliary examples on which each trained. A model fitted
            to virtual clients of one half has not seen the examples of the other.
        on_quarter: whether each trained on a quarter, so on half as many different examples.
        recipes: index into `knowledge.recipes()` of the recipe of each.
        rounds: the simulated rounds.
        readings: the readings of each probe, in each round.

    """

    counts: Int[Tensor, "virtual classes"]
    halves: Int[Tensor, " virtual"]
    on_quarter: Bool[Tensor, " virtual"]
    recipes: Int[Tensor, " virtual"]
    rounds: tuple[int, ...]
    readings: Mapping[Probe, Float[Tensor, "virtual rounds ..."]]

    def take(self, rows: Int[Tensor, " rows"]) -> "Simulation":
        """Return some of the virtual clients."""
        return Simulation(
            self.counts[rows],
            self.halves[rows],
            self.on_quarter[rows],
            self.recipes[rows],
            self.rounds,
            {probe: reading[rows] for probe, reading in self.readings.items()},
        )

    @property
    def shares(self) -> Float[Tensor, "virtual classes"]:
        """Return the label shares of each, in float64."""
        counts = self.counts.double()
        return counts / counts.sum(1, keepdim=True)

    @property
    def sizes(self) -> Int[Tensor, " virtual"]:
        """Return the number of examples of each."""
        return self.counts.sum(1)


def run_simulation(
    view: View,
    knowledge: Knowledge,
    rounds: Sequence[int],
    probes: Sequence[Probe],
    *,
    cohort_size: int | None = None,
    with_quarters: bool = False,
    is_alone: bool = False,
) -> Simulation:
    """Train virtual clients from the broadcast of each round, and probe their updates.

    Virtual clients as in Ma et al. (Whispers of Data): each restarts from the broadcast in
    every round and is never aggregated. Its examples are drawn from the prior and are the same
    in all rounds. Readings in the cache, from this or another attack, are reused; the others
    are computed and saved one by one. All draws depend on the seed of `knowledge.compute`. Each
    worker holds the weights of one chunk at a time: 32 updates, or for large cohorts up to four
    times the number of members.

    Args:
        view: provides broadcasts and reported sizes.
        knowledge: with auxiliary examples, a model, and a recipe or candidates for it.
        rounds: each with a broadcast.
        probes: what to read.
        cohort_size: None = single clients; otherwise the size of virtual cohorts, whose update
            is the mean over virtual clients, weighted by examples. At most
            `chunk.MAX_COHORT_SIZE` are used, so that the mean varies a little more than that of
            a larger cohort.
        with_quarters: whether half of the virtual clients train on a quarter of the auxiliary
            examples in place of a half. The others are the first of those without quarters.
        is_alone: whether no other attack is likely to ask for the same virtual clients, so that
            only these probes are read.

    Raises:
        NeedsError: if knowledge is missing, there are too few auxiliary examples, a split of
            the prior cannot be drawn from, or a training diverges.
        WorkerError: if workers die repeatedly.

    """
    if not probes or (cohort_size is not None and cohort_size < 1):
        raise ValueError(
            "a simulation needs 1 probe or more, and cohorts of 1 client or more, got "
            f"{len(probes)} probes and cohorts of {cohort_size}"
        )
    context = build_context(view, knowledge, rounds)
    sizes = size_range(view, knowledge.prior)
    chunks = draw_chunks(
        knowledge,
        sizes,
        cohort_size,
        context.seed,
        after_server=SERVER not in view.observers,
        with_quarters=with_quarters,
    )
    clients_of_readings = [
        clients for chunk in chunks for clients in chunk.clients_per_reading()
    ]
    return Simulation(
        torch.tensor([_total_counts(clients) for clients in clients_of_readings]),
        torch.tensor([clients[0].half for clients in clients_of_readings]),
        torch.tensor([clients[0].quarter is not None for clients in clients_of_readings]),
        torch.tensor([clients[0].recipe for clients in clients_of_readings]),
        tuple(rounds),
        collect_readings(
            context,
            knowledge,
            rounds,
            chunks,
            tuple(probes) if is_alone else _with_shared_probes(probes),
        ),
    )


def read_updates(
    view: View,
    target: Party,
    knowledge: Knowledge,
    rounds: Sequence[int],
    probes: Sequence[Probe],
) -> Mapping[Probe, Float[Tensor, "rounds ..."]]:
    """Probe the updates of a target exactly as those of virtual clients.

    Args:
        view: with updates of the target.
        target: the party whose updates are read.
        knowledge: as for `run_simulation`.
        rounds: with an update of the target and a broadcast: see `readable_rounds`.
        probes: what to read.

    """
    updates = view.updates(target)
    missing = [number for number in rounds if number not in updates]
    if missing:
        raise ValueError(f"the view has no update of {target} in the rounds {missing}")
    context = build_context(view, knowledge, rounds)
    return _read(context, {n: updates[n].delta for n in rounds}, probes)


def read_deltas(
    view: View,
    knowledge: Knowledge,
    rounds: Sequence[int],
    deltas: Sequence[Weights],
    probe: Probe,
) -> Float[Tensor, "deltas ..."]:
    """Probe changes of the broadcasts of these rounds, of which several may be of one round."""
    context = build_context(view, knowledge, tuple(dict.fromkeys(rounds)))
    with single_thread(), computing("float32"):
        return torch.cat(
            [
                probe.read(context.probe_context(number), [delta])
                for number, delta in zip(rounds, deltas, strict=True)
            ]
        )


def read_broadcasts(
    view: View, knowledge: Knowledge, rounds: Sequence[int], probes: Sequence[Probe]
) -> Mapping[Probe, Float[Tensor, "rounds ..."]]:
    """Probe the broadcasts themselves, as if a client had sent an update of zeros."""
    context = build_context(view, knowledge, rounds)
    zeros = {
        number: {name: torch.zeros_like(w) for name, w in context.broadcasts[number].items()}
        for number in rounds
    }
    return _read(context, zeros, probes)


def readable_rounds(view: View, target: Party) -> tuple[int, ...]:
    """Return the rounds with an update of the target and a broadcast, in order."""
    with_broadcast = {m.round for m in view.messages if isinstance(m.body, Broadcast)}
    return tuple(
        number for number in view.rounds_with_updates(target) if number in with_broadcast
    )


def median_cohort_size(view: View, rounds: Sequence[int]) -> int:
    """Return the median cohort size over these rounds, for updates of `COHORT`.

    Raises:
        NeedsError: if none is known.

    """
    cohort_sizes = view.cohort_sizes()
    sizes = [cohort_sizes[number] for number in rounds if cohort_sizes.get(number)]
    if not sizes:
        raise NeedsError("the number of clients behind a mean update, which was not recorded")
    return max(1, round(median(sizes)))


def _with_shared_probes(probes: Sequence[Probe]) -> tuple[Probe, ...]:
    shared = SHARED_PROBES if set(probes) & set(SHARED_PROBES) else ()
    return tuple(dict.fromkeys((*probes, *shared)))


def _read(
    context: SimulationContext, deltas: Mapping[int, Weights], probes: Sequence[Probe]
) -> Mapping[Probe, Tensor]:
    contexts = {number: context.probe_context(number) for number in deltas}
    with single_thread(), computing("float32"):
        return {
            probe: torch.cat(
                [probe.read(contexts[number], [delta]) for number, delta in deltas.items()]
            )
            for probe in probes
        }


def _total_counts(clients: Sequence[VirtualClient]) -> list[int]:
    return [
        sum(counts)
        for counts in zip(*(one_client.counts for one_client in clients), strict=True)
    ]
