"""Schedules of cohorts for the federation of a plan, whose noise is measured."""

from overheard.auditing.inputs import Resources
from overheard.planning.cohorts.design import CohortDesign, compare_schedules, refuse_many
from overheard.planning.cohorts.measured_noise import measure_noise
from overheard.planning.cohorts.schedules import propose_schedules
from overheard.plans.plan import Plan


def propose_cohorts_of_plan(
    plan: Plan,
    *,
    cohort: int | None = None,
    rounds: int | None = None,
    resources: Resources | None = None,
    seed: int = 0,
) -> CohortDesign:
    """Return schedules for the federation of a plan, with the noise of its sums measured.

    Args:
        plan: two of its federations are simulated, without defenses.
        cohort: clients wanted in a round; None = as many as the plan selects.
        rounds: number of rounds; None = those of the plan.
        resources: where the data are, and the workers.
        seed: of the schedules.

    Raises:
        PlanError: if a number is out of its range.
        NeedsError: if label shares of the plan's clients cannot be read from updates.

    """
    clients, training = plan.data.clients, plan.training
    rounds = training.rounds if rounds is None else rounds
    cohort = max(1, round(training.participation * clients)) if cohort is None else cohort
    refuse_many(clients, rounds)
    schedules = propose_schedules(clients, cohort, rounds, seed)
    noise = measure_noise(plan, cohort, rounds, resources or Resources())
    return compare_schedules(clients, cohort, schedules, noise)
