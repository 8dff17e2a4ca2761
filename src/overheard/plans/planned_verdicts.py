"""Which verdicts a plan cannot give, since it has too few clients or runs."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from overheard.findings.names import name_observers
from overheard.findings.planned_sizes import REDRAWN_PARTITIONS, PlannedSizes
from overheard.findings.question import Question
from overheard.plans.plan import Plan, ThreatPlan
from overheard.plans.registries import question_of_attack
from overheard.statistics.judgement import VERDICT_LEVEL
from overheard.statistics.re_pairing import smallest_p_value

Raise = Callable[[PlannedSizes, int], PlannedSizes]
"""Replaces a size by this number."""

REMEDIES: Mapping[str, Raise] = MappingProxyType(
    {
        "clients": lambda sizes, count: replace(sizes, clients=count),
        "seeds": lambda sizes, count: replace(sizes, runs=count),
        "natural controls of each seed": lambda sizes, count: replace(sizes, controls=count),
    }
)
"""What can be raised, in the words of a plan."""

MOST_TRIED = 50
"""The largest size that is proposed."""


def describe_missing_verdicts(
    plan: Plan, recorded_clients: int | None = None
) -> tuple[str, ...]:
    """Return a sentence for each threat and question that cannot be judged.

    Each states the smallest p-value that the plan can reach, and what to change.

    Args:
        plan: the plan.
        recorded_clients: number of clients of the recording to audit; None = a simulation.

    """
    found = dict[str, None]()
    for threat in plan.threats:
        for question in _questions_of(threat):
            sizes = _planned_sizes(plan, threat, recorded_clients)
            smallest = smallest_p_value(question.count_planned_pairings(sizes))
            if smallest > VERDICT_LEVEL:
                text = _describe(threat, question, sizes, smallest, recorded_clients)
                found[text] = None
    return tuple(found)


def _questions_of(threat: ThreatPlan) -> Iterator[Question[Any]]:
    by_name = {one.name: one for one in map(question_of_attack, threat.attacks)}
    yield from by_name.values()


def _planned_sizes(
    plan: Plan, threat: ThreatPlan, recorded_clients: int | None
) -> PlannedSizes:
    split, candidates = plan.data.split, plan.data.candidates
    is_simulated = recorded_clients is None
    has_controls = is_simulated and plan.data.shifts and plan.data.exchanges == "natural"
    return PlannedSizes(
        runs=len(plan.seeds) if is_simulated else 1,
        clients=plan.data.clients if recorded_clients is None else recorded_clients,
        rounds=plan.training.rounds,
        about=threat.about,
        controls=plan.data.natural_controls if has_controls else 0,
        unknown_users=0 if plan.data.people is None else plan.data.people.unseen,
        redrawn_partitions=REDRAWN_PARTITIONS
        if is_simulated and split is not None and not split.has_fixed_shares
        else 0,
        exchanges_records=(candidates is not None and candidates.are_canaries)
        or (split is not None and split.draws_labels_at_random),
    )


def _describe(
    threat: ThreatPlan,
    question: Question[Any],
    sizes: PlannedSizes,
    smallest: float,
    recorded_clients: int | None,
) -> str:
    observers = name_observers(threat.observer_parties)
    target = "the cohort" if threat.about == "cohort" else "each client"
    place = f"{observers[0].upper()}{observers[1:]}, about {target}"
    remedies = [
        f"{count} {words}"
        for words, raise_to in REMEDIES.items()
        if recorded_clients is None or words == "clients"
        if (count := _smallest_enough(question, sizes, raise_to)) is not None
    ]
    advice = f"take {' or '.join(remedies)}" if remedies else question.advice_without_pairings
    return (
        f'{place}, {question.name}: the verdict will be "not enough to judge". The smallest '
        f"p-value of this plan is {smallest:.2g}, and {VERDICT_LEVEL:g} is needed: {advice}."
    )


def _smallest_enough(
    question: Question[Any], sizes: PlannedSizes, raise_to: Raise
) -> int | None:
    """Return the smallest number that is enough; None if none is."""
    for count in range(1, MOST_TRIED + 1):
        raised = raise_to(sizes, count)
        if smallest_p_value(question.count_planned_pairings(raised)) <= VERDICT_LEVEL:
            return count
    return None
