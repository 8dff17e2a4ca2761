"""Which verdicts a plan cannot give, since it has too few clients or runs."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from overheard.core.needs import CANDIDATES
from overheard.core.parties import is_client
from overheard.core.split import Split
from overheard.data.splits.shares import Shares
from overheard.findings.finding import RecordDifference
from overheard.findings.names import name_observers
from overheard.findings.planned_sizes import REDRAWN_PARTITIONS, PlannedSizes
from overheard.findings.question import Question
from overheard.plans.plan import Plan, ThreatPlan
from overheard.statistics.judgement import VERDICT_LEVEL
from overheard.statistics.permutation_test import smallest_p_value

Raise = Callable[[PlannedSizes, int], PlannedSizes]
"""Replaces a size by this number."""

NATURAL_CONTROLS = "natural controls of each seed"

REMEDIES: Mapping[str, Raise] = MappingProxyType(
    {
        "clients": lambda sizes, count: replace(sizes, clients=count),
        "seeds": lambda sizes, count: replace(sizes, runs=count),
        NATURAL_CONTROLS: lambda sizes, count: replace(sizes, controls=count),
    }
)
"""What can be raised, in the words of a plan."""

MOST_TRIED = 50
"""The largest size that is proposed."""


NO_TRUTH = (
    "The recording has no ground truth (truth.json): claims cannot be checked, and no verdict "
    "is possible."
)

TRUTH_OF_LIST = (
    "The recording has no ground truth (truth.json): only claims on the membership of the "
    "listed records are checked."
)


def describe_unlike_records(plan: Plan, difference: RecordDifference) -> tuple[str, ...]:
    """Return a sentence for each target that gets no verdict, as listed records differ.

    There is none if they are enough alike.

    Args:
        plan: the plan, which says whether it asks about clients or the cohort.
        difference: how far they differ.

    """
    abouts = dict.fromkeys(
        threat.about
        for threat in plan.threats
        if any(CANDIDATES in attack.needs for attack in threat.attacks)
    )
    return tuple(
        f'Membership of the listed records: the verdict will be "not enough to judge": '
        f"{difference.sentence(about)}. Scores are reported without a verdict, and attacks "
        "that train shadow models are left out. For a verdict, draw canaries before the next "
        "run (`overheard canaries`)."
        for about in abouts
        if not difference.is_small(about)
    )


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
        for question in threat.questions():
            if recorded_clients is None:
                sizes = _planned_sizes(plan, threat)
            else:
                sizes = _recorded_sizes(plan, threat, recorded_clients)
            smallest = smallest_p_value(question.count_planned_pairings(sizes))
            if smallest > VERDICT_LEVEL:
                remedies = _remedies(plan, recorded_clients)
                text = _describe(threat, question, sizes, smallest, remedies)
                found[text] = None
    return tuple(found)


def _planned_sizes(plan: Plan, threat: ThreatPlan) -> PlannedSizes:
    data, split = plan.data, plan.data.split
    has_fixed_shares = split is None or split.has_fixed_shares
    sizes = PlannedSizes(
        runs=len(plan.seeds),
        clients=data.clients,
        rounds=plan.training.rounds,
        about=threat.about,
        controls=data.natural_controls if _has_natural_controls(plan) else 0,
        unknown_users=0 if data.people is None else data.people.unseen,
        redrawn_partitions=0 if has_fixed_shares else REDRAWN_PARTITIONS,
        exchanges_records=_exchanges_records(plan),
        observing_clients=_count_observing_clients(threat),
        participation=plan.training.participation,
        equal_clients=_count_equal_clients(split),
    )
    return replace(sizes, are_cohorts_equal=has_fixed_shares and _are_cohorts_equal(plan))


def _recorded_sizes(plan: Plan, threat: ThreatPlan, clients: int) -> PlannedSizes:
    return PlannedSizes(
        runs=1,
        clients=clients,
        rounds=plan.training.rounds,
        about=threat.about,
        controls=0,
        unknown_users=0 if plan.data.people is None else plan.data.people.unseen,
        exchanges_records=_exchanges_records(plan),
        observing_clients=_count_observing_clients(threat),
    )


def _has_natural_controls(plan: Plan) -> bool:
    return bool(plan.data.shifts) and plan.data.exchanges == "natural"


def _exchanges_records(plan: Plan) -> bool:
    split, candidates = plan.data.split, plan.data.candidates
    are_canaries = candidates is not None and candidates.are_canaries
    # Listed records may be alike by themselves: their content tells, and no number of a plan.
    return (
        are_canaries
        or plan.data.lists_records
        or (split is not None and split.draws_labels_at_random)
    )


def _count_observing_clients(threat: ThreatPlan) -> int:
    """Return how many clients observe. An observer is no target."""
    return sum(is_client(one) for one in threat.observer_parties)


def _are_cohorts_equal(plan: Plan) -> bool:
    """Return whether stated shares give all runs the same cohort: nothing else varies."""
    smallest, largest = plan.data.sizes
    training = plan.training
    everyone_replies = (
        training.participation == 1
        and not training.failure_rate
        and training.sampling != "with_replacement"
    )
    return smallest == largest and everyone_replies and not plan.schedule.has_exchanges


def _count_equal_clients(split: Split | None) -> tuple[int, ...]:
    """Return how many clients have each of the stated label shares; () = none are stated."""
    if not isinstance(split, Shares):
        return ()
    return tuple(Counter(split.compositions).values())


def _describe(
    threat: ThreatPlan,
    question: Question[Any],
    sizes: PlannedSizes,
    smallest: float,
    remedies: Mapping[str, Raise],
) -> str:
    observers = name_observers(threat.shown_observers)
    target = "the cohort" if threat.about == "cohort" else "each client"
    place = f"{observers[0].upper()}{observers[1:]}, about {target}"
    enough = [
        f"{count} {words}"
        for words, raise_to in remedies.items()
        if (count := _smallest_enough(question, sizes, raise_to)) is not None
    ]
    advice = f"take {' or '.join(enough)}" if enough else question.advice_without_pairings
    return (
        f'{place}, {question.name}: the verdict will be "not enough to judge". The smallest '
        f"p-value of this plan is {smallest:.2g}, and {VERDICT_LEVEL:g} is needed: {advice}."
    )


def _remedies(plan: Plan, recorded_clients: int | None) -> Mapping[str, Raise]:
    """Return what can be raised: without shifts, for example, no control is natural."""
    if recorded_clients is not None:
        return {"clients": REMEDIES["clients"]}
    if _has_natural_controls(plan):
        return REMEDIES
    return {words: one for words, one in REMEDIES.items() if words != NATURAL_CONTROLS}


def _smallest_enough(
    question: Question[Any], sizes: PlannedSizes, raise_to: Raise
) -> int | None:
    """Return the smallest number that is enough; None if none is."""
    for count in range(1, MOST_TRIED + 1):
        raised = raise_to(sizes, count)
        if smallest_p_value(question.count_planned_pairings(raised)) <= VERDICT_LEVEL:
            return count
    return None
