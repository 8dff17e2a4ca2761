"""Reads the trend of a target's models, on one scale for all rounds if runs are simulated."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Broadcast, Update, Weights, apply_update
from overheard.core.parties import COHORT, Party
from overheard.core.view import View
from overheard.questions.shift.claim import Shift
from overheard.questions.shift.estimators.assumed_federation import assume_federation
from overheard.questions.shift.estimators.model_comparisons import (
    NamedComparison,
    standard_comparisons,
)
from overheard.questions.shift.estimators.model_series import ModelComparison, RecentTensors
from overheard.questions.shift.estimators.round_scale import RoundScale, fit_round_scale
from overheard.questions.shift.estimators.simulated_readings import (
    federation_key,
    federations_at_once,
)
from overheard.questions.shift.estimators.trend import Trend
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
from overheard.simulation.target_groups import TargetGroup, group_targets

MIN_SIMULATED_RUNS = 8
"""Fewer simulated runs give no useful deviation of a round."""


@final
@dataclass(frozen=True, slots=True)
class TrendReader:
    """Reads a number by round from a target's models, and claims a break in its trend.

    Args:
        attack: name of the attack, for error messages.
        comparison: how the number of a round is read.
        trend: the trend that the number is compared with.
        extract: whether the observers' own influence is removed from the broadcasts.
        simulated_runs: maximum number of simulated runs without a shift. They standardise the
            statistics. There are no more than the virtual clients of the attacker's compute
            settings; 0 = none.

    """

    attack: str
    comparison: NamedComparison
    trend: Trend
    extract: bool
    simulated_runs: int

    def __post_init__(self) -> None:
        """Refuse settings that exclude each other."""
        if self.simulated_runs and self.simulated_runs < MIN_SIMULATED_RUNS:
            raise ValueError(
                f"simulated_runs must be 0, or {MIN_SIMULATED_RUNS} or more, got "
                f"{self.simulated_runs}"
            )
        if self.simulated_runs and not self.extract:
            raise ValueError(
                "simulated_runs needs extract: simulations show what clients send, without the "
                "observers' own part"
            )

    def claim_shift(self, view: View, target: Party, knowledge: Knowledge) -> Shift:
        """Claim a shift since the round of the largest statistic.

        Raises:
            NeedsError: if too few consecutive rounds are readable, or what the comparison or
                the simulation needs is missing.

        """
        subject, scale = f"{self.attack} on {target}", None
        if self.simulated_runs:
            (group,) = group_targets(view, (target,), len(view.messages))
            knowledge, scale = self._simulate(view, knowledge, group, subject)
        comparison = self.comparison.build(knowledge)
        values = series_of_target(view, target, comparison, self.extract)
        rounds = TargetModels(view, target, self.extract).rounds()
        return self.trend.claim_shift(values, rounds, comparison.models - 1, subject, scale)

    def _simulate(
        self, view: View, knowledge: Knowledge, group: TargetGroup, subject: str
    ) -> tuple[Knowledge, RoundScale]:
        """Return the knowledge to read with, and the scale of each round.

        Models are read on auxiliary examples that no simulated client trains on, as no real
        client trains on any of them.
        """
        count = min(self.simulated_runs, knowledge.compute.virtual_clients)
        if count < MIN_SIMULATED_RUNS:
            raise NeedsError(
                f"{subject} needs {MIN_SIMULATED_RUNS} virtual clients or more for its "
                f"simulated runs, got {count}"
            )
        context = build_context(view, knowledge, group.rounds)
        held_out = context.auxiliary.take(context.auxiliary_split.held_out)
        reading_knowledge = replace(knowledge, auxiliary=held_out)
        runs = simulate_series(
            view, knowledge, reading_knowledge, group, self.comparison, count
        )
        scale = fit_round_scale([self.trend.divergences(run) for run in runs])
        if not scale.mean:
            raise NeedsError(
                f"{subject}: its statistic is the same in all simulated runs, so it has no "
                "scale: choose another source, or a shorter trend"
            )
        return reading_knowledge, scale


def series_of_target(
    view: View, target: Party, comparison: ModelComparison, extract: bool
) -> dict[int, float]:
    """Return the finite numbers by round that a comparison reads from a target's models."""
    target_models = TargetModels(view, target, extract)
    return comparison.series(target_models.rounds(), target_models.models())


@final
@dataclass(frozen=True, slots=True)
class TargetModels:
    """A target's model after training in each round, if it can be read.

    The model of round t is the broadcast of round t plus the update in reply, and was trained
    on the data of round t. For `COHORT` it is the mean, weighted by examples, of the models of
    all clients but the observers, as `View.updates` removes the observers' own influence. In a
    federation of two it is exactly the other client's model.

    Args:
        view: the view of the observers.
        target: the target.
        extract: False = for `COHORT`, use the unchanged broadcast of round t + 1 for round t,
            including the observers' own influence. If a client's own updates are readable,
            there is nothing to extract and this has no effect.

    """

    view: View
    target: Party
    extract: bool = True

    def rounds(self) -> tuple[int, ...]:
        """Return the rounds with a readable model, in order, without reading weights."""
        with_updates = self.view.rounds_with_updates(self.target)
        readable = (
            self._models_after_rounds()
            if self._uses_broadcasts_only
            else self.view.broadcasts()
        )
        return tuple(number for number in with_updates if number in readable)

    def models(self) -> Iterator[Weights]:
        """Yield the model of each of these rounds."""
        if self._uses_broadcasts_only:
            ends = self._models_after_rounds()
            yield from (ends[number] for number in self.rounds())
            return
        starts = self.view.broadcasts()
        for number, update in self._updates():
            yield apply_update(starts[number], update.delta)

    def _updates(self) -> Iterator[tuple[int, Update]]:
        if self.target == COHORT:
            # Means of updates in clear text are computed on request. One round at a time keeps
            # only one in memory.
            for number in self.rounds():
                yield number, self.view.during((number,)).updates(COHORT)[number]
        else:
            updates = self.view.updates(self.target)
            yield from ((number, updates[number]) for number in self.rounds())

    @property
    def _uses_broadcasts_only(self) -> bool:
        return self.target == COHORT and not self.extract

    def _models_after_rounds(self) -> dict[int, Weights]:
        """Return the weights after each round, from the next round's broadcast."""
        return {
            message.round - 1: message.body.weights
            for message in (*self.view.messages, *self.view.closing_broadcasts)
            if isinstance(message.body, Broadcast)
        }


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
