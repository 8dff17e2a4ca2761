"""The numbers by round of simulated runs without a shift."""

from collections.abc import Sequence
from math import isfinite, nan

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.knowledge import Knowledge
from overheard.core.messages import apply_update
from overheard.core.view import View
from overheard.questions.shift.estimators.assumed_federation import assume_federation
from overheard.questions.shift.estimators.model_comparisons import (
    NamedComparison,
    standard_comparisons,
)
from overheard.questions.shift.estimators.model_series import ModelComparison, RecentTensors
from overheard.questions.shift.estimators.simulated_readings import (
    federation_key,
    federations_at_once,
)
from overheard.simulation.federations.design import (
    FederationDesign,
    SimulatedFederation,
    draw_federation,
)
from overheard.simulation.federations.resampling_pool import (
    ResamplingPool,
    build_resampling_pool,
)
from overheard.simulation.federations.run import run_simulated_federations
from overheard.simulation.simulation_context import build_context
from overheard.simulation.target_groups import TargetGroup


def simulate_series(
    view: View,
    knowledge: Knowledge,
    reading_knowledge: Knowledge,
    group: TargetGroup,
    comparison: NamedComparison,
    runs: int,
) -> list[dict[int, float]]:
    """Simulate runs without a shift, and read the numbers of each run by round.

    The observer simulates the federation that it assumes (`estimators.assumed_federation`). The
    results of all standard comparisons are cached together, so that attacks with different
    comparisons share one simulation.

    Args:
        view: what the observer sees.
        knowledge: how clients train, with the auxiliary examples that they draw from.
        reading_knowledge: the same with the examples on which models are read.
        group: the target, with its rounds.
        comparison: the numbers to read.
        runs: number of simulated runs.

    """
    context = build_context(view, knowledge, group.rounds)
    design = assume_federation(view, knowledge, context.build_model, group)
    examples = context.auxiliary.take(torch.cat(context.auxiliary_split.halves))
    cache, seed = knowledge.compute.cache, knowledge.compute.seed.child("unshifted runs")

    def key(one: NamedComparison) -> str:
        settings = f"series {seed} {runs} {one.name}"
        return federation_key(design, knowledge, context.build_model, examples, settings)

    stored = cache.load(key(comparison))
    if stored is None:
        wanted = list(dict.fromkeys([comparison, *standard_comparisons(knowledge)]))
        pool = build_resampling_pool(examples, design.sizes[1], seed.child("copies"))
        federations = [draw_federation(design, pool, number, seed) for number in range(runs)]
        read = _read_federations(
            design,
            federations,
            pool,
            knowledge,
            [one.build(reading_knowledge) for one in wanted],
        )
        for one, values in zip(wanted, read, strict=True):
            cache.save(key(one), {"values": values})
        stored = {"values": read[0]}
    first = group.rounds[0]
    return [
        {first + place: value for place, value in enumerate(run) if isfinite(value)}
        for run in stored["values"].tolist()
    ]


def _read_federations(
    design: FederationDesign,
    federations: Sequence[SimulatedFederation],
    pool: ResamplingPool,
    knowledge: Knowledge,
    comparisons: Sequence[ModelComparison],
) -> Float[Tensor, "comparisons federations rounds"]:
    """Return the numbers of each federation by round; NaN where there is none."""
    assert knowledge.build_model is not None
    values = torch.full(
        (len(comparisons), len(federations), design.rounds), nan, dtype=torch.float64
    )
    size = federations_at_once(design, knowledge.build_model)
    for begin in range(0, len(federations), size):
        batch = federations[begin : begin + size]
        recent = [[RecentTensors(one) for _ in batch] for one in comparisons]
        for one in run_simulated_federations(
            design, batch, pool.examples, knowledge, knowledge.build_model
        ):
            models = [
                apply_update(start, delta)
                for start, delta in zip(one.broadcasts, one.target_deltas, strict=True)
            ]
            for row, comparison in enumerate(comparisons):
                for place, tensor in enumerate(comparison.read(models)):
                    value = recent[row][place].add(one.place, tensor)
                    if value is not None:
                        values[row, begin + place, one.place] = value
    return values
