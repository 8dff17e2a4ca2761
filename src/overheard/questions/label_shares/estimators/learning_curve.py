"""Virtual clients in growing numbers, until twice as many hardly help the attacker."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from jaxtyping import Float
from torch import Tensor

from overheard.core.claims import LearningCurve
from overheard.core.knowledge import Knowledge
from overheard.core.view import View
from overheard.questions.label_shares.estimators.cross_fit import HALVES
from overheard.simulation.cached_readings import DESCRIPTION
from overheard.simulation.chunk import chunk_width
from overheard.simulation.probe import Probe
from overheard.simulation.simulation import Simulation, run_simulation

FEWEST_CLIENTS = 128
"""Virtual clients of the first portion: from fewer, errors vary too much to be compared."""

FEWEST_CHUNKS = 4
"""The same in chunks, which are large for cohorts: whole ones cannot double from fewer."""

MeasureErrors = Callable[[Simulation], Float[Tensor, " tested"]]
"""Returns the L1 errors of virtual clients, each by an estimator not trained on it. Those of a
larger simulation begin with those of a smaller one."""

FitAndEstimate = Callable[[Simulation, Simulation], Float[Tensor, "virtual classes"]]
"""Fits an estimator to the first virtual clients, and estimates the shares of the others."""


def simulate_until_flat(
    view: View,
    knowledge: Knowledge,
    rounds: Sequence[int],
    probes: Sequence[Probe],
    measure_errors: MeasureErrors,
    *,
    cohort_size: int | None = None,
    with_quarters: bool = False,
) -> tuple[Simulation, LearningCurve | None]:
    """Run the simulation with more and more virtual clients, until the error falls no more.

    Each portion about doubles their number. It is the last one if it lowered the mean error of
    the virtual clients of the portions before by less than `knowledge.compute.smallest_gain`.
    What a portion trained is in the cache for the next one, and for other attacks.

    Args:
        view: as for `run_simulation`, like all but `measure_errors`.
        knowledge: with the largest number of virtual clients.
        rounds: each with a broadcast.
        probes: what to read.
        measure_errors: measures the errors.
        cohort_size: None = single clients.
        with_quarters: as for `run_simulation`.

    Returns:
        the simulation, and the errors; None = all were trained at once, as the knowledge asks.

    """
    compute, planned = knowledge.compute, knowledge.compute.virtual_clients
    simulate = partial(
        run_simulation,
        view,
        rounds=rounds,
        probes=probes,
        cohort_size=cohort_size,
        with_quarters=with_quarters,
    )
    if not compute.smallest_gain:
        return simulate(knowledge), None
    clients, means = list[int](), list[float]()
    before: Tensor | None = None
    for count in (*portions(planned, chunk_width(cohort_size)), planned):
        known = replace(knowledge, compute=replace(compute, virtual_clients=count))
        simulation = simulate(known)
        if count == planned:
            break
        errors = measure_errors(simulation)
        clients.append(count)
        means.append(float(errors.mean()))
        if before is not None and is_flat(before, errors, compute.smallest_gain):
            compute.on_progress(f"{DESCRIPTION}: {count} of {planned} suffice", 1, 1)
            break
        before = errors
    return simulation, LearningCurve(tuple(clients), tuple(means), count, planned)


def portions(planned: int, chunk: int) -> tuple[int, ...]:
    """Return the numbers of virtual clients below the planned one, each about twice the last.

    They are whole chunks, so that nothing is trained twice.

    Args:
        planned: the largest number.
        chunk: virtual clients, or virtual cohorts, of a chunk.

    """
    fewest = max(FEWEST_CLIENTS, FEWEST_CHUNKS * chunk)
    counts = []
    count = -(-planned // (2 * chunk)) * chunk
    while fewest <= count < planned:
        counts.append(count)
        count = -(-count // (2 * chunk)) * chunk
    return tuple(reversed(counts))


def is_flat(
    before: Float[Tensor, " some"], errors: Float[Tensor, " all"], smallest_gain: float
) -> bool:
    """Return whether the errors of the same virtual clients fell by less than this part."""
    earlier = float(before.mean())
    return earlier - float(errors[: len(before)].mean()) < smallest_gain * earlier


def errors_by_halves(
    fit_and_estimate: FitAndEstimate, simulation: Simulation
) -> Float[Tensor, " virtual"]:
    """Estimate each virtual client from those of the other half, whose examples differ.

    Returns:
        the L1 error of each.

    """
    errors = simulation.shares.new_zeros(len(simulation.counts))
    for half in range(HALVES):
        is_trained = simulation.halves == half
        train, test = (rows.nonzero().flatten() for rows in (is_trained, ~is_trained))
        estimated = fit_and_estimate(simulation.take(train), simulation.take(test))
        errors[test] = (estimated.to(errors) - simulation.shares[test]).abs().sum(1)
    return errors
