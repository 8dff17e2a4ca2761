"""Short measurements of training and of attacks, from which costs are estimated."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter, process_time
from typing import Any, final

import torch

from overheard.auditing.inputs import AuditInputs
from overheard.core.attack import Attack
from overheard.core.compute_settings import MemoryTensorCache
from overheard.core.examples import Examples, without_classes
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.learning.initialization import initial_weights
from overheard.learning.models.unknown import Unknown
from overheard.learning.train import train_groups
from overheard.learning.training_job import ClientTask, TrainingGroup
from overheard.planning.outlook import PlannedView
from overheard.plans.plan import Plan
from overheard.plans.registries import question_of_attack

MEASURED_VIRTUAL_CLIENTS = 32
"""Virtual clients in a measurement of an attack: one chunk."""

TRAINED_CLIENTS = 8
"""Clients in a measurement of training, unless a batch of one takes too long."""

TRAINED_EXAMPLES = 128
"""Examples of such a client."""

LONG_BATCH = 0.5
"""Seconds of a batch from which on it is the whole measurement."""

CHEAP = 5.0
"""Seconds of a measurement up to which further targets are measured too."""


@final
@dataclass(frozen=True, slots=True)
class AttackCost:
    """The measured seconds of one attack.

    Args:
        first_target: with a single target, including all work that targets share.
        next_target: of each further target.
        rounds: number of rounds that were measured.

    """

    first_target: float
    next_target: float
    rounds: int


def measure_training(plan: Plan, audit_inputs: AuditInputs) -> float:
    """Return the seconds that a client trains on one example, by training a few batches.

    Returns 0 for a model that cannot compute.
    """
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
    seconds([1])
    one_batch = seconds([batch])
    if one_batch > LONG_BATCH:
        return one_batch / batch
    sizes = [TRAINED_EXAMPLES] * TRAINED_CLIENTS
    return seconds(sizes) / sum(sizes)


# Any: an attack answers a question of its own.
def measure_attack(
    attack: Attack[Any], view: PlannedView, able: Sequence[Party]
) -> AttackCost | None:
    """Run an attack on one round and one target, then on more targets; None if it fails.

    The made-up updates of a sketch have the shapes of real ones, so that most attacks take as
    long. Attacks that need all rounds get all.

    Args:
        attack: the attack.
        view: what it sees.
        able: the targets on which it can run, one or more.

    """
    seen = tuple(view.view.rounds_with_updates(able[0]))
    rounds = seen if question_of_attack(attack).needs_all_rounds else seen[:1]
    observed = view.view.during(rounds)

    def seconds(targets: Sequence[Party]) -> float:
        compute = replace(
            view.knowledge.compute,
            virtual_clients=MEASURED_VIRTUAL_CLIENTS,
            cache=MemoryTensorCache(),
        )
        # The processor's time: multiplied by the number of targets, the waits for other
        # processes would count as much as the work.
        begun = process_time()
        attack.infer(observed, targets, replace(view.knowledge, compute=compute), Seed(0))
        return process_time() - begun

    try:
        first = seconds(able[:1])
        if first > CHEAP or len(able) == 1:
            return AttackCost(first, 0.0, len(rounds))
        first = min(first, seconds(able[:1]))  # the first time libraries are loaded too
        # The more targets, the less a small error of measurement counts.
        count = min(len(able), max(2, int(CHEAP / max(first, 0.01))))
        more = seconds(able[:count]) - first
        return AttackCost(first, max(0.0, more) / (count - 1), len(rounds))
    # Attacks may be of other packages, and a sketch is no real run.
    except Exception:
        return None
