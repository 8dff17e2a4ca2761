"""Readings of simulated federations, on which an attack on this question is calibrated."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.defense import BuildModel
from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Weights
from overheard.core.seeds import Seed
from overheard.learning.initialization import fresh_model
from overheard.learning.sent_tensors import sent_shapes
from overheard.simulation.cache_keys import combined_key, network_text
from overheard.simulation.federations.design import (
    FederationDesign,
    draw_federation,
    held_shares,
    population_shares,
)
from overheard.simulation.federations.resampling_pool import build_resampling_pool
from overheard.simulation.federations.run import (
    SimulatedRound,
    run_simulated_federations,
)

ReadRound = Callable[[Sequence[Weights], Sequence[Weights]], Float[Tensor, "runs ..."]]
"""Reads each pair of a broadcast and the target's update of the same round."""


MAX_BYTES = 2**29
"""The most bytes of weights in memory; larger models are simulated a few at a time."""


@final
@dataclass(frozen=True, slots=True)
class SimulatedReadings:
    """What an observer reads in simulated federations, and their truth.

    Args:
        key: differs between readings that could differ.
        readings: of each federation, the ones without a shift first.
        true_shares: label shares of the examples that the target holds.
        population: the label shares from which it draws them.
        rising: the labels that its shift makes more frequent; none = no shift.

    """

    key: str
    readings: Float[Tensor, "federations rounds ..."]
    true_shares: Float[Tensor, "federations rounds classes"]
    population: Float[Tensor, "federations rounds classes"]
    rising: Bool[Tensor, "federations classes"]

    @property
    def shifts(self) -> Bool[Tensor, " federations"]:
        """Whether the target shifts."""
        return self.rising.any(1)


def simulate_readings(
    design: FederationDesign,
    knowledge: Knowledge,
    build_model: BuildModel,
    examples: Examples,
    read_round: ReadRound,
    seed: Seed,
    *,
    unshifted: int,
    shifted: int = 0,
    reading: str = "",
) -> SimulatedReadings:
    """Simulate federations, and read each as the real one is read; results are cached.

    Args:
        design: the assumptions about the federation.
        knowledge: how clients train, the known defenses and the compute settings.
        build_model: builds the architecture.
        examples: the auxiliary examples from which clients draw theirs.
        read_round: reads one round of all federations.
        seed: determines all draws.
        unshifted: number of federations without a shift.
        shifted: number of federations in which the target shifts.
        reading: name of `read_round` and its settings, for the cache.

    """
    key = federation_key(
        design, knowledge, build_model, examples, f"{seed}{unshifted}{shifted}{reading}"
    )
    tensors = knowledge.compute.cache.load(key)
    if tensors is None:
        pool = build_resampling_pool(examples, design.sizes[1], seed.child("copies"))
        federations = [
            draw_federation(design, pool, number, seed) for number in range(unshifted)
        ] + [
            draw_federation(design, pool, number, seed, shifts=True)
            for number in range(shifted)
        ]
        labels = pool.examples.labels.numpy()
        size = federations_at_once(design, build_model)
        tensors = {
            "readings": torch.cat(
                [
                    _read(
                        run_simulated_federations(
                            design,
                            federations[begin : begin + size],
                            pool.examples,
                            knowledge,
                            build_model,
                        ),
                        read_round,
                    )
                    for begin in range(0, len(federations), size)
                ]
            ),
            "true_shares": torch.from_numpy(held_shares(design, federations, labels)),
            "population": torch.from_numpy(population_shares(design, federations)),
            "rising": torch.stack([torch.from_numpy(one.rising) for one in federations]),
        }
        knowledge.compute.cache.save(key, tensors)
    return SimulatedReadings(
        key,
        tensors["readings"],
        tensors["true_shares"],
        tensors["population"],
        tensors["rising"].bool(),
    )


def federations_at_once(design: FederationDesign, build_model: BuildModel) -> int:
    """Return how many federations may be in memory at once, at least one."""
    model = fresh_model(build_model, Seed(0))
    size = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    return max(1, MAX_BYTES // (size * (design.clients + 3)))


def _read(rounds: Iterator[SimulatedRound], read_round: ReadRound) -> Tensor:
    return torch.stack([read_round(one.broadcasts, one.target_deltas) for one in rounds], 1)


def federation_key(
    design: FederationDesign,
    knowledge: Knowledge,
    build_model: BuildModel,
    examples: Examples,
    settings: str,
) -> str:
    """Return the cache key of what is read in simulated federations.

    Args:
        design: the assumptions about the federation.
        knowledge: how clients train, the algorithm, and the known defenses.
        build_model: builds the architecture.
        examples: the examples that clients draw from.
        settings: everything else that affects the result.

    """
    model = fresh_model(build_model, Seed(0))
    shapes = list(sent_shapes(model).items())
    start = design.start or {}
    background = knowledge.background if knowledge.defenses else None
    return combined_key(
        repr(
            (
                design.clients,
                design.observers,
                design.target_clients,
                design.rounds,
                design.exchange_every,
                design.sizes,
                design.label_shares,
                design.splits,
                design.is_plain,
            )
        ),
        repr((knowledge.candidate_recipes(), knowledge.defenses or (), settings, shapes)),
        network_text(model),
        "" if knowledge.algorithm is None else repr(knowledge.algorithm),
        *examples.tensors(),
        *(part for item in start.items() for part in item),
        *([] if background is None else background.tensors()),
    )
