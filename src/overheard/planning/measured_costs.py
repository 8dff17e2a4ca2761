"""Short measurements of training and of attacks, from which costs are estimated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import fsum
from time import perf_counter, process_time
from typing import Any, final

import torch
from torch import Tensor

from overheard.auditing.inputs import AuditInputs
from overheard.core.attack import Attack
from overheard.core.compute_settings import MemoryTensorCache, TensorCache
from overheard.core.examples import Examples, without_classes
from overheard.core.messages import Aggregate
from overheard.core.needs import SUMS
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.devices.choice import on_cpu_alone
from overheard.learning.devices.training_work import TrainingWork
from overheard.learning.initialization import initial_weights
from overheard.learning.models.unknown import Unknown
from overheard.learning.train import train_groups
from overheard.learning.training_job import ClientTask, TrainingGroup
from overheard.planning.outlook import PlannedView
from overheard.plans.registries import question_of_attack
from overheard.simulation.cached_readings import READING_KEY
from overheard.simulation.chunk import COUNTS_KEY

FEW_CLIENTS = 32
"""Virtual clients in the first measurement of an attack: one chunk."""

MOST_CLIENTS = 512
"""Most virtual clients in the second measurement of an attack."""

SLOW = 10.0
"""Seconds of a measurement up to which it is repeated, after libraries were loaded."""

MOST_CLIENTS_OF_SLOW_FIT = 256
"""The same, if the first measurement takes more than `CHEAP` seconds."""

TRAINED_CLIENTS = 8
"""Clients in a measurement of training, unless a batch of one takes too long."""

TRAINED_EXAMPLES = 128
"""Examples of such a client."""

LONG_BATCH = 0.5
"""Seconds of a batch from which on it is the whole measurement."""

ROUNDS_OF_SUMS = 4
"""Rounds that are measured of an attack on sums: one cohort says nothing of its clients."""

CHEAP = 3.0
"""Seconds of a measurement up to which more targets and virtual clients are measured too."""


@final
@dataclass(frozen=True, slots=True)
class CellCost:
    """The measured seconds of one attack, without those of its simulation.

    Args:
        first_target: with a single target, including all work that targets share.
        again: the same, for rounds on which the attack was run before.
        next_target: of each further target.

    """

    first_target: float
    again: float
    next_target: float


@final
@dataclass(frozen=True, slots=True)
class AttackCost:
    """The measured seconds of one attack, with few and with more virtual clients.

    Args:
        few: with `FEW_CLIENTS` virtual clients.
        more: with `clients` virtual clients.
        clients: at least `FEW_CLIENTS`; if equal, `few` holds for any number.
        simulation: to train a virtual client and to read its update; 0 if an attack that was
            measured before does it.
        rounds: number of rounds that were measured.
        works: what a GPU may train for it in a round.

    """

    few: CellCost
    more: CellCost
    clients: int
    simulation: float
    rounds: int
    works: tuple[TrainingWork, ...] = ()

    def at(self, clients: int) -> CellCost:
        """Return the seconds with this number of virtual clients, on a straight line."""
        few, more = self.few, self.more
        if self.clients == FEW_CLIENTS:
            return few
        share = (clients - FEW_CLIENTS) / (self.clients - FEW_CLIENTS)
        pairs = (
            (few.first_target, more.first_target),
            (few.again, more.again),
            (few.next_target, more.next_target),
        )
        return CellCost(*(max(0.0, low + share * (high - low)) for low, high in pairs))


def measure_training(audit_inputs: AuditInputs) -> float:
    """Return the seconds that a client trains on one example, by training a few batches.

    Returns 0 for a model that cannot compute.
    """
    plan = audit_inputs.plan
    if isinstance(plan.training.model, Unknown):
        return 0.0
    task, recipe = audit_inputs.dataset.task, replace(plan.training.recipe, epochs=1)
    shape = (TRAINED_EXAMPLES, *task.shape)
    inputs = torch.zeros(shape) if task.vocabulary is None else torch.ones(shape).long()
    pool = Examples(inputs, torch.arange(TRAINED_EXAMPLES) % task.classes)
    if not task.has_classes:
        pool = without_classes(inputs, torch.zeros(TRAINED_EXAMPLES, task.outputs))
    build = partial(plan.training.model.build, task)
    start = initial_weights(build, Seed(0))

    def seconds(sizes: Sequence[int]) -> float:
        clients = [
            ClientTask(Party(f"client/{number}"), torch.arange(size))
            for number, size in enumerate(sizes)
        ]
        begun = perf_counter()
        group = TrainingGroup(start, pool, clients, Seed(0))
        for _ in train_groups(build, [group], recipe, round=0, workers=1):
            pass
        return perf_counter() - begun

    batch = min(recipe.batch, TRAINED_EXAMPLES)
    seconds([min(2, batch)])  # a batch norm cannot train on a single example
    one_batch = seconds([batch])
    if one_batch > LONG_BATCH:
        return one_batch / batch
    sizes = [TRAINED_EXAMPLES] * TRAINED_CLIENTS
    return seconds(sizes) / sum(sizes)


# Any: an attack answers a question of its own.
def measure_attack(
    attack: Attack[Any], view: PlannedView, able: Sequence[Party], cache: "TimedCache"
) -> AttackCost | None:
    """Run an attack on one round and one target, then on more of all; None if it fails.

    The made-up updates of a sketch have the shapes of real ones, so that most attacks take as
    long. Attacks that need all rounds get all, and attacks on sums a few, with cohorts that
    vary. An attack that makes one claim about all targets together compares them, so it gets
    two.

    Args:
        attack: the attack.
        view: what it sees.
        able: the targets on which it can run, one or more.
        cache: has the virtual clients of attacks that were run before. Their training counts
            for the first attack that was measured with them.

    """
    seen = tuple(view.view.observed_rounds(able[0]))
    few_rounds = ROUNDS_OF_SUMS if SUMS in attack.needs else 1
    if SUMS in attack.needs and view.seen.recording is None:
        view = replace(view, view=_with_varying_cohorts(view.view))
    rounds = seen if question_of_attack(attack).needs_all_rounds else seen[:few_rounds]
    runs = _MeasuredRuns(attack, view, rounds, able, cache)
    cache.begin_attack()
    try:
        with on_cpu_alone() as works:
            few = more = runs.measure(FEW_CLIENTS)
        uncounted, clients = cache.uncounted_seconds(), FEW_CLIENTS
        if trains_virtual_clients(attack):
            clients = _clients_to_measure(view, few, cache.used_seconds())
        if clients > FEW_CLIENTS:
            with on_cpu_alone():
                more = runs.measure(clients, few.next_target)
    # Attacks may be of other packages, and a sketch is no real run.
    except Exception:
        return None
    # If it shared the first ones, it shares all, though others were measured with fewer.
    simulation = cache.uncounted_seconds() / clients if uncounted else 0.0
    cache.count_used()
    return AttackCost(few, more, clients, simulation, len(rounds), tuple(works))


def _with_varying_cohorts(view: View) -> View:
    """Return a sketched view in which each sum lacks another client.

    All clients of a sketch take part, and attacks on sums refuse cohorts that do not vary.
    """
    return replace(
        view,
        messages=tuple(
            replace(message, body=_without_one(message.body, view.observers, message.round))
            if isinstance(message.body, Aggregate)
            else message
            for message in view.messages
        ),
    )


def _without_one(sent: Aggregate, observers: frozenset[Party], number: int) -> Aggregate:
    """Return a sum without one of its clients that do not observe, if there are several."""
    others = sorted(sent.cohort - observers)
    if len(others) < 2:
        return sent
    cohort = sent.cohort - {others[number % len(others)]}
    mean = None if sent.examples is None else sent.examples / len(sent.cohort)
    examples = None if mean is None else round(mean * len(cohort))
    return replace(sent, cohort=cohort, examples=examples)


# Any: an attack answers a question of its own.
def trains_virtual_clients(attack: Attack[Any]) -> bool:
    """Return whether an attack trains virtual clients, whose number takes most of its time."""
    return attack.training_source() == "virtual clients"


def _clients_to_measure(view: PlannedView, few: CellCost, simulation: float) -> int:
    """Return a number of virtual clients that trains for about `CHEAP` seconds at most.

    Args:
        view: with the planned number.
        few: the cost with `FEW_CLIENTS` virtual clients.
        simulation: seconds to train those, for whichever attack.

    """
    affordable = FEW_CLIENTS * int(CHEAP / max(simulation, 0.01))
    most = MOST_CLIENTS if few.first_target < CHEAP else MOST_CLIENTS_OF_SLOW_FIT
    planned = view.knowledge.compute.virtual_clients
    return max(FEW_CLIENTS, min(affordable, planned, most))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _MeasuredRuns:
    """Runs of an attack on a few rounds, in the processor's time.

    Multiplied by the number of targets, waits for other processes would count as much as work.
    """

    # Any: an attack answers a question of its own.
    attack: Attack[Any]
    view: PlannedView
    rounds: Sequence[int]
    able: Sequence[Party]
    cache: "TimedCache"

    def measure(self, clients: int, next_target: float | None = None) -> CellCost:
        """Run the attack with this many virtual clients.

        Args:
            clients: the number of virtual clients.
            next_target: seconds that each further target may take; None = unknown.

        """
        fits, fewest = self.cache.fits, min(len(self.able), 2 if self.attack.is_joint else 1)
        first = self._seconds(clients, fewest)
        has_stored_fits = self.cache.fits > fits
        if first > SLOW and not has_stored_fits:
            again = first
        else:
            again = min(first, self._seconds(clients, fewest))
        if not has_stored_fits:
            first = again  # the first time libraries are loaded too
        longest = again if next_target is None else next_target
        next_target = next_target or 0.0
        if len(self.able) > fewest and again <= CHEAP:
            # The more targets, the less a small error of measurement counts.
            count = min(len(self.able), max(fewest + 1, int(CHEAP / max(longest, 0.01))))
            more = max(0.0, self._seconds(clients, count) - again)
            next_target = more / (count - fewest)
        single = (fewest - 1) * next_target
        return CellCost(max(0.0, first - single), max(0.0, again - single), next_target)

    def _seconds(self, clients: int, targets: int) -> float:
        known = self.view.knowledge
        compute = replace(
            known.compute,
            virtual_clients=clients,
            device="cpu" if known.compute.device == "cpu" else "auto",
            workers=1,
            cluster=None,
            cache=self.cache,
        )
        observed, able = self.view.view.during(self.rounds), self.able[:targets]
        begun, simulated = process_time(), self.cache.simulation
        self.attack.infer(observed, able, replace(known, compute=compute), Seed(0))
        return process_time() - begun - (self.cache.simulation - simulated)


@final
class TimedCache(TensorCache):
    """A cache in memory that knows how long each reading of virtual clients took.

    It counts fits and whatever else is saved.
    """

    def __init__(self) -> None:
        self.simulation = 0.0
        self.fits = 0
        self._saved = MemoryTensorCache()
        self._seconds = dict[str, float]()
        self._used = set[str]()
        self._counted = set[str]()
        self._last = process_time()

    def begin_attack(self) -> None:
        """Forget which readings were used."""
        self._used.clear()

    def used_seconds(self) -> float:
        """Return the seconds that the used readings took, whichever attack trained them."""
        return fsum(self._seconds[key] for key in self._used)

    def uncounted_seconds(self) -> float:
        """Return the seconds of those used readings that count for no other attack."""
        return fsum(self._seconds[key] for key in self._used - self._counted)

    def count_used(self) -> None:
        """Count the used readings for this attack."""
        self._counted |= self._used

    def load(self, key: str) -> Mapping[str, Tensor] | None:
        """Return the tensors saved under this key, or None."""
        loaded = self._saved.load(key)
        if key in self._seconds:
            self._used.add(key)
        self._last = process_time()
        return loaded

    def save(self, key: str, tensors: Mapping[str, Tensor]) -> None:
        """Save these tensors, and the time since whatever was loaded or saved before."""
        self._saved.save(key, tensors)
        saved = process_time()
        if READING_KEY in tensors:
            self._seconds[key] = saved - self._last
            self._used.add(key)
            self.simulation += self._seconds[key]
        elif COUNTS_KEY not in tensors:
            self.fits += 1
        self._last = saved
