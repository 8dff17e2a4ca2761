"""How far updates move where a GPU rounds the factors of products."""

from dataclasses import dataclass, replace
from time import perf_counter
from typing import final

from overheard.auditing.inputs import AuditInputs
from overheard.auditing.simulate import build_federation
from overheard.core.messages import Weights
from overheard.core.recipe import Precision
from overheard.federation.cohort import local_training, sample_cohort
from overheard.learning.devices.choice import has_gpu
from overheard.learning.example_gradients import flatten_weights
from overheard.learning.initialization import initial_weights
from overheard.learning.train import train_cohort

MOST_CLIENTS = 2
"""Clients that are trained to measure it."""


@final
@dataclass(frozen=True, slots=True)
class RoundingEffect:
    """What rounding changes of the first clients of an audit's first round.

    Args:
        precision: how far factors are rounded.
        clients: number of clients.
        change: L2 norm of what it changes of their updates, over that of the updates; the
            largest of the clients.
        speed: seconds without rounding, over those with it.

    """

    precision: Precision
    clients: int
    change: float
    speed: float

    def __str__(self) -> str:
        """Describe it as a part of a sentence."""
        of_clients = "one client" if self.clients == 1 else f"{self.clients} clients"
        return (
            f"measured before the audit, {self.precision} changes the first updates of "
            f"{of_clients} by {self.change:.2g} of their size, at {self.speed:.2g} times the "
            "speed of float32"
        )


def measure_rounding(audit_inputs: AuditInputs, device: str = "cuda") -> RoundingEffect | None:
    """Train the first clients of the plan with and without rounding, on a GPU.

    Returns:
        What rounding changes; None if nothing is rounded, on a CPU or as the plan says, or if
        nobody takes part in the first round.

    """
    plan, resources = audit_inputs.plan, audit_inputs.resources
    precision = plan.training.recipe.precision
    if precision == "float32" or resources.device == "cpu" or not has_gpu():
        return None
    arm = next(one for one in plan.arms if one.is_reference)
    partition = audit_inputs.partition(plan.seeds[0])
    federation = build_federation(
        plan,
        arm,
        plan.seeds[0],
        partition,
        audit_inputs.dataset,
        replace(resources, device="cpu"),  # it is not run
    )
    training, cohort = local_training(federation), sample_cohort(federation, 0)
    clients = cohort.clients[:MOST_CLIENTS]
    if not clients:
        return None
    start = initial_weights(training.build_model, federation.seed.child("initial"))

    def train(with_precision: Precision) -> tuple[list[Weights], float]:
        """Return the updates, and the seconds."""
        began = perf_counter()
        results = train_cohort(
            training.build_model,
            start,
            cohort.pool,
            clients,
            replace(training.recipe, precision=with_precision),
            seed=federation.seed,
            round=0,
            engine=federation.engine,
            device=device,
        )
        return [one.delta for one in results], perf_counter() - began

    for one in ("float32", precision):  # The first time, a GPU loads what it needs.
        train(one)
    exact, seconds_exact = train("float32")
    rounded, seconds_rounded = train(precision)
    changes = list[float]()
    for delta, other in zip(exact, rounded, strict=True):
        whole = flatten_weights(delta).double()
        apart = (flatten_weights(other).double() - whole).norm()
        changes.append(float(apart / whole.norm().clamp(min=1e-300)))
    return RoundingEffect(
        precision, len(clients), max(changes), seconds_exact / seconds_rounded
    )
