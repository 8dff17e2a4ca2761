"""What noise on the sum, dropouts, and other cohorts leave of label shares from sums."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import final

import numpy as np

from overheard.core.accounting.accountant import account_mechanism
from overheard.core.defense import RunParameters
from overheard.core.errors import NeedsError
from overheard.data.splits.dirichlet import Dirichlet
from overheard.defenses.dp_fedavg import DpFedavg
from overheard.participation.participation import find_participation
from overheard.participation.sums_reading import read_sums
from overheard.planning.cohorts.schedules import propose_schedules
from overheard.plans.plan import Plan
from overheard.statistics.run_means import estimate_mean
from overheard_studies.measurements.from_sums.federations import CLIENTS, Cell
from overheard_studies.measurements.from_sums.scheduled import attack_sums, run_schedule
from overheard_studies.study import Measurement, MeasurementRun, Study
from overheard_studies.values import ReproducedValue, make_value

SEEDS = (1, 2)

ROUNDS = 40

CLIP = 1.0
"""Largest norm of an update. The updates of these federations are about half as long."""


@final
@dataclass(frozen=True, slots=True)
class Defended:
    """A federation behind secure aggregation, with a defense of its sums.

    Args:
        key: its name.
        words: what defends it.
        cell: the federation.
        schedule: the name of its schedule; "" = random cohorts.

    """

    key: str
    words: str
    cell: Cell
    schedule: str = ""

    def took_part(self, seed: int) -> np.ndarray | None:
        """Return who takes part in which round, (rounds, clients); None = as the plan draws."""
        proposed = propose_schedules(CLIENTS, CLIENTS // 2, self.cell.rounds, seed)
        found = (one.took_part for one in proposed if one.name == self.schedule)
        return next(found, None)


PLAIN = Cell("mnist", 0.03, Dirichlet(0.5), ROUNDS)

NOISE = (0.1, 0.3, 1.0)
"""Standard deviations of the noise on a sum, in clips."""

DEFENDED = (
    Defended("none", "no further defense", PLAIN),
    *(
        Defended(
            f"noise_{noise:g}",
            f"noise of {noise:g} clips on the sum",
            replace(PLAIN, defenses=(DpFedavg(clip=CLIP, noise_multiplier=noise),)),
        )
        for noise in NOISE
    ),
    Defended("dropouts", "a fifth of the clients drops out", replace(PLAIN, failure_rate=0.2)),
    Defended("fair", "fair cohorts", PLAIN, "fair cohorts"),
    Defended("batches_5", "batches of 5", PLAIN, "batches of 5"),
    Defended("fixed", "fixed groups of 10", PLAIN, "fixed groups of 10"),
)


def _measure(defended: Defended, run: MeasurementRun) -> Iterator[ReproducedValue]:
    """Yield error, coverage, accuracy, resolution, smallest group and epsilon."""
    seeds = SEEDS[:1] if run.quick else SEEDS
    cell = replace(defended.cell, rounds=10) if run.quick else defended.cell
    defended = replace(defended, cell=cell)
    words, key = f"{cell.words(len(seeds))}, {defended.words}", defended.key
    yield from _from_participation(defended, seeds[0], words, run)
    for defense in cell.defenses:
        mechanism = defense.mechanism()
        if mechanism is not None:
            parameters = RunParameters(cell.rounds, cell.participation)
            found = account_mechanism(mechanism, parameters).recomputed
            told = f"{words}: epsilon of a client at delta {mechanism.delta:g}"
            epsilon = None if found is None or found.pld == np.inf else found.pld
            yield make_value(f"{key}_epsilon", told, epsilon)
    try:
        made = [
            claimed
            for seed in seeds
            for claimed in attack_sums(
                _plan(cell, seed), seed, (cell.rounds,), run, defended.took_part(seed)
            )
        ]
    except NeedsError as error:
        yield make_value(f"{key}_ratio", f"{words}: refused, as {error}", None)
        return
    rows = {
        "ratio": ("mean L1, of that of the guess", [one.error / one.guess for one in made]),
        "coverage": ("share of 90 % intervals that hold", [one.coverage for one in made]),
        "accuracy": ("accuracy of the last broadcast", [one.accuracy for one in made]),
    }
    for end, (what, each) in rows.items():
        mean = estimate_mean(np.array(each), np.arange(len(each)))
        yield make_value(f"{key}_{end}", f"{words}: {what}", mean)
    doubted = float(sum(one.is_doubted for one in made))
    yield make_value(f"{key}_doubted", f"{words}: runs that doubt intervals", doubted)


def _plan(cell: Cell, seed: int) -> Plan:
    """Return the plan, whose attacker knows the defenses."""
    plan = cell.plan(seed)
    known = (*plan.threats[0].knows, "defenses")
    threat = plan.threats[0].model_copy(update={"knows": known})
    return plan.model_copy(update={"threats": (threat,)})


def _from_participation(
    defended: Defended, seed: int, words: str, run: MeasurementRun
) -> Iterator[ReproducedValue]:
    """Yield what follows from who took part alone."""
    folder = run.folder / "running"
    took_part = defended.took_part(seed)
    transcript, _ = run_schedule(defended.cell.plan(seed), seed, folder, run, took_part)
    participation = find_participation(transcript.messages)
    reading = None if participation is None else read_sums(participation)
    if reading is None:
        return
    key = defended.key
    yield make_value(
        f"{key}_resolution", f"{words}: resolution, seed {seed}", reading.resolution
    )
    group = float(reading.group_at_most)
    yield make_value(f"{key}_group", f"{words}: smallest group found, seed {seed}", group)


def sums_defenses() -> Study:
    """Return what defenses of sums leave of label shares; a core's quarter of an hour."""
    return Study(
        "sums_defenses",
        "Label shares from sums under noise on the sum, dropouts and other cohorts",
        "It repeats no paper. Epsilon is that of replacing all data of a client, against a "
        "server that knows who took part and adds no noise of its own.",
        measurements=tuple(Measurement(one.key, partial(_measure, one)) for one in DEFENDED),
    )
