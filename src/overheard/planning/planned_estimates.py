"""How closely canary clients will estimate the epsilon of a client, said before the run."""

from collections.abc import Iterator

from overheard.auditing.run_records import planned_defenses
from overheard.core.parties import client
from overheard.epsilon.client_estimate import expected_interval
from overheard.epsilon.client_estimate_table import estimate_text
from overheard.plans.plan import ArmPlan, Plan

USUAL_EPSILONS = (1.0, 4.0)
"""Of which the interval is stated where none is recomputed."""

MOST_CANARIES = 0.01
"""The share of clients that Andrew et al. advise: more cost accuracy."""


def describe_planned_estimates(plan: Plan) -> Iterator[str]:
    """Yield a sentence on each mechanism that canary clients of a plan will measure."""
    for arm in plan.arms:
        canaries = _count_canaries(plan, arm)
        if not canaries:
            continue
        runs = canaries * len(plan.seeds)
        share = canaries / plan.data.clients
        more = (
            " More than one in a hundred costs accuracy: compare with an arm without them."
            if share > MOST_CANARIES
            else ""
        )
        for defense in planned_defenses(plan, arm):
            accounted = defense.accounted
            if accounted is None or accounted.mechanism.unit != "client":
                continue
            mechanism, found = accounted.mechanism, accounted.recomputed
            known = () if found is None or not 0.01 < found.pld < 50 else (found.pld,)
            intervals = "; ".join(
                estimate_text(expected_interval(one, runs, mechanism.delta, mechanism.moves))
                for one in known or USUAL_EPSILONS
            )
            plural = "" if canaries == 1 else "s"
            yield (
                f"{arm.name}: {canaries} canary client{plural} in each of {len(plan.seeds)} "
                f"runs, {100 * share:.2g} % of the clients, will estimate the epsilon of a "
                f"client {mechanism.relation_words} with a 95 % interval like {intervals}, if "
                f"that is the true one.{more}"
            )


def _count_canaries(plan: Plan, arm: ArmPlan) -> int:
    parties = map(client, range(plan.data.clients))
    return sum(any(one.is_canary(party) for one in arm.defenses) for party in parties)
