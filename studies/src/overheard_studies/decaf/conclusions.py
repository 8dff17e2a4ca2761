"""The paper's sentences on its results, and the statistics by which each holds here or not.

Numbers are lost in the public text of some sentences; the statistic then says what stands in.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

import numpy as np
import torch

from overheard.core.knowledge import Knowledge
from overheard.core.parties import client
from overheard.core.seeds import Seed
from overheard.findings.audit import Audit
from overheard.findings.finding import Finding
from overheard.learning.simplex import normalize_to_shares
from overheard.plans.plan import UNDEFENDED
from overheard.plans.plugin_field import plugin_label
from overheard.questions.label_shares.attacks.decaf import Decaf
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.scorer.label_shares import LabelSharesScorer
from overheard.statistics.estimate import Estimate
from overheard.statistics.run_means import estimate_mean
from overheard_studies.conclusion import Conclusion, Statistics
from overheard_studies.decaf.setting import (
    ATTACK,
    DISTANCES,
    TABLE_ATTACK,
    DecafBenchmark,
)
from overheard_studies.estimates import (
    FindingFilter,
    find_best_round,
    mean_score,
    select_findings,
)
from overheard_studies.runs import StudyRuns

ByRun = Mapping[int, float]
"""One number a run, by its seed."""

AVERAGED_ROUNDS = 15
"""Largest number of rounds that figure 6 (d) averages."""

FOLLOWED_USER = 2
"""The user, counted from 1, in figure 6 (d)."""

FIRST_THREE = range(3)
"""The users "#1-3"."""

ALL_CLASSES = range(4)
"""The users 1 to 4, who hold all classes."""

NULL_CLASSES = range(4, 10)
"""The users 5 to 10, who have null classes."""

THIRD = 2
"""The third round."""

GUESSES = 10_000
"""Random compositions over which the random guess is averaged."""


def over_runs(values: ByRun) -> Estimate:
    """Return the mean over runs."""
    numbers = np.array(list(values.values()))
    return estimate_mean(numbers, np.array(list(values)), may_be_trials=False)


def run_means(
    audit: Audit,
    attack: str,
    rounds: Iterable[int],
    score: str,
    users: Collection[int] | None = None,
    arm: str = UNDEFENDED,
) -> ByRun:
    """Return the mean of a score over users and rounds that were attacked one by one.

    Args:
        audit: the finished audit.
        attack: name of the attack in the plan.
        rounds: the rounds, from 0.
        score: name of the score.
        users: the users, from 0; None = all.
        arm: arm of the plan.

    """
    targets = None if users is None else {client(user) for user in users}
    values = defaultdict[int, list[float]](list)
    for number in rounds:
        for finding in select_findings(audit, FindingFilter(attack, (number,), arm)):
            if targets is None or finding.target in targets:
                values[finding.cell.seed].append(_score(finding, score))
    return {seed: float(np.mean(several)) for seed, several in values.items()}


def _score(finding: Finding, score: str) -> float:
    return next(one.value for one in finding.scores if one.name == score)


def combine(compute: Callable[..., float], *runs: ByRun) -> ByRun:
    """Return a number a run that is computed from others of the same run."""
    return {
        seed: compute(*(one[seed] for one in runs))
        for seed in runs[0]
        if all(seed in one for one in runs)
    }


def difference(first: ByRun, second: ByRun, factor: float = 1.0) -> Estimate:
    """Return the mean over runs of the first less a multiple of the second."""
    return over_runs(combine(lambda one, other: one - factor * other, first, second))


def random_guess(true: Sequence[float], distance: str) -> float:
    """Return the mean distance of random compositions: uniform numbers, scaled to sum to 1.

    The paper does not describe its random guess; this one has distances like those it gives.
    """
    draws = torch.rand(GUESSES, len(true), generator=Seed(0).child("guess").generator())
    shares = draws / draws.sum(1, keepdim=True)
    order = {"l1": 1.0, "l2": 2.0, "linf": float("inf")}[distance]
    truth = torch.tensor(true) / sum(true)
    return float(torch.linalg.vector_norm(shares - truth, order, dim=1).mean())


def score_shares(
    claims: Sequence[Sequence[float]], true: Sequence[float]
) -> Mapping[str, float]:
    """Score the mean of claims, rescaled to sum to 1."""
    mean = torch.tensor(claims).double().mean(0)
    scorer, truth = LabelSharesScorer(), LabelShares(torch.tensor(true, dtype=torch.float64))
    guesses = scorer.guesses(truth, Knowledge(classes=len(true)))
    scores = scorer.score(LabelShares(normalize_to_shares(mean)), truth, guesses)
    return {one.name: one.value for one in scores}


def averaged_scores(audit: Audit, rounds: int, distance: str) -> ByRun:
    """Return the distance of the followed user's claims averaged over the first rounds."""
    user = client(FOLLOWED_USER - 1)
    by_round = [
        select_findings(audit, FindingFilter(ATTACK, (number,), target=user))
        for number in range(rounds)
    ]
    return {
        findings[0].cell.seed: score_shares(
            [finding.claimed.numbers for finding in findings], findings[0].true_numbers
        )[distance]
        for findings in zip(*by_round, strict=True)
    }


def table_conclusions(benchmark: DecafBenchmark, audit: str) -> tuple[Conclusion, ...]:
    """Return what the paper says of each of Tables III to VII, in the best of the rounds."""
    users = range(len(benchmark.users))
    full = [user for user in users if 0 not in benchmark.users[user].true_percents]
    guesses = [random_guess(one.true_percents, "l1") for one in benchmark.users]

    def best(runs: StudyRuns) -> tuple[Audit, list[int]]:
        found = runs.audits[audit]
        rounds = range(runs.plans[audit].training.rounds)
        return found, [find_best_round(found, TABLE_ATTACK, "l1", rounds)]

    def whole(score: str, runs: StudyRuns, _: object) -> Statistics:
        found, rounds = best(runs)
        return {score: mean_score(found, FindingFilter(TABLE_ATTACK, tuple(rounds)), score)}

    def of_users(score: str, chosen: Sequence[int], runs: StudyRuns, _: object) -> Statistics:
        found, rounds = best(runs)
        return {score: over_runs(run_means(found, TABLE_ATTACK, rounds, score, chosen))}

    def below_guess(runs: StudyRuns, _: object) -> Statistics:
        found, rounds = best(runs)
        return {
            f"user {user + 1}": over_runs(
                combine(
                    lambda value, user=user: guesses[user] - value,
                    run_means(found, TABLE_ATTACK, rounds, "l1", [user]),
                )
            )
            for user in users
        }

    def unequal(runs: StudyRuns, _: object) -> Statistics:
        found, rounds = best(runs)
        others, even = (
            run_means(found, TABLE_ATTACK, rounds, "l1", chosen) for chosen in (users[1:], [0])
        )
        return {"l1": difference(others, even)}

    return (
        Conclusion(
            "null_found",
            "there will be no positive gradient changes given a null class",
            partial(whole, "null_recall"),
            margin=0.9,
            words="share of the null classes that are found",
        ),
        Conclusion(
            "null_exact",
            "null-classes are 100% accurately identified in all cases",
            partial(whole, "null_exact"),
            margin=0.9,
            words="share of users whose set of null classes is exact",
        ),
        Conclusion(
            "below_guess",
            "they are still much smaller than the random guesses",
            below_guess,
            words="random guess less Decaf, L1",
        ),
        Conclusion(
            "first_three",
            "for users #1-3 whose data have no null-classes, the distance is often within 0.2",
            partial(of_users, "l1", FIRST_THREE),
            "below",
            0.2,
            words="L1 of users 1 to 3",
        ),
        Conclusion(
            "no_null",
            "is consistently below 5% when no null classes exist",
            partial(of_users, "linf", full),
            "below",
            0.05,
            words="Linf of the users without null classes (the norm is lost)",
        ),
        Conclusion(
            "unequal",
            "The distances tend to more likely increase as the data is more non-IID",
            unequal,
            words="L1 of all others less that of the user with equal shares",
        ),
    )


def round_conclusions(names: Mapping[str, str], averaged: str) -> tuple[Conclusion, ...]:
    """Return what the paper says of Figure 6, of each data set alone.

    Args:
        names: names of the data sets, by their audit.
        averaged: the audit in which claims are averaged over rounds.

    """

    def each(
        compute: Callable[[Audit, range, str], Estimate],
        key: str,
        runs: StudyRuns,
        _: object,
    ) -> Statistics:
        rounds = range(runs.plans[key].training.rounds)
        if len(rounds) <= THIRD:
            return {}
        return {one: compute(runs.audits[key], rounds, one) for one in DISTANCES}

    def at(audit: Audit, distance: str, *rounds: int) -> ByRun:
        return run_means(audit, ATTACK, rounds, distance)

    def decrease(audit: Audit, _: range, distance: str) -> Estimate:
        return difference(at(audit, distance, 0), at(audit, distance, THIRD))

    def increase(audit: Audit, rounds: range, distance: str) -> Estimate:
        return difference(at(audit, distance, *rounds[-3:]), at(audit, distance, THIRD))

    def from_third(audit: Audit, rounds: range, distance: str) -> Estimate:
        by_round = [at(audit, distance, number) for number in rounds]
        return over_runs(
            combine(lambda *values: float(abs(np.argmin(values) - THIRD)), *by_round)
        )

    def average(first: int, second: int, runs: StudyRuns, _: object) -> Statistics:
        audit, last = runs.audits[averaged], runs.plans[averaged].training.rounds
        return {
            distance: difference(
                averaged_scores(audit, min(first, last), distance),
                averaged_scores(audit, min(second, last), distance),
            )
            for distance in DISTANCES
        }

    return (
        *(
            conclusion
            for key, name in names.items()
            for conclusion in (
                Conclusion(
                    f"{key}_decrease",
                    f"{name}: all distances decrease in the first few FL rounds",
                    partial(each, decrease, key),
                    words="round 1 less round 3",
                    audits=(key,),
                ),
                Conclusion(
                    f"{key}_minimum",
                    f"{name}: reaching a minimum around the third FL round",
                    partial(each, from_third, key),
                    "below",
                    1.5,
                    words="rounds between the best one and the third",
                    audits=(key,),
                ),
                Conclusion(
                    f"{key}_increase",
                    f"{name}: distances gradually increase",
                    partial(each, increase, key),
                    words="the last three rounds less round 3",
                    audits=(key,),
                ),
            )
        ),
        Conclusion(
            "averaged",
            "the distance first decreases with the number of multiple rounds increasing",
            partial(average, 1, 5),
            words="claims of round 1 less those averaged over rounds 1 to 5, one user",
            audits=(averaged,),
        ),
        Conclusion(
            "averaged_later",
            "and then slowly increasing",
            partial(average, AVERAGED_ROUNDS, 5),
            words="claims averaged over rounds 1 to 15 less those over 1 to 5, one user",
            audits=(averaged,),
        ),
    )


def _sweep_means(runs: StudyRuns, distance: str) -> list[ByRun]:
    """Return the mean over users and rounds in each audit, in their order."""
    return [
        run_means(audit, ATTACK, range(runs.plans[name].training.rounds), distance)
        for name, audit in runs.audits.items()
    ]


def _each_distance(
    compute: Callable[..., float], distances: Sequence[str], runs: StudyRuns, _: object
) -> Statistics:
    return {
        distance: over_runs(combine(compute, *_sweep_means(runs, distance)))
        for distance in distances
    }


AUXILIARY_CONCLUSIONS = (
    Conclusion(
        "steady",
        "There is no noticeable change as the server's number of auxiliary samples increases "
        "from 2 to 30 per class",
        partial(_each_distance, lambda *values: max(values) - min(values), DISTANCES),
        "below",
        0.05,
        words="largest less smallest distance of a run",
    ),
)
"""What the paper says of Figure 7."""

NEURON_CONCLUSIONS = (
    Conclusion(
        "upward",
        "an upward trend in all distances as the number of neurons increases",
        partial(
            _each_distance,
            lambda *values: float(np.polyfit(range(len(values)), values, 1)[0]),
            DISTANCES,
        ),
        words="change of the distance with each doubling",
    ),
    Conclusion(
        "slowly",
        "the distances increase slowly",
        partial(_each_distance, lambda *values: values[-1] - values[0], ("l1",)),
        "below",
        0.1,
        words="L1 with most neurons less L1 with fewest",
    ),
)
"""What the paper says of Figure 8."""


def ablation_conclusions(attack: Decaf, audit: str) -> tuple[Conclusion, ...]:
    """Return what the paper says of Figure 9 or 10, in the best round of the whole attack.

    The factors are lost. The tables give 3.2 for users 5 to 10 without null removal, and 3.1
    for users 1 to 4 without calibrator; a factor of more than 2 counts as theirs.

    Args:
        attack: the attack without one step.
        audit: the audit with both attacks.

    """

    def by_attack(score: str, users: Collection[int] | None, runs: StudyRuns) -> list[ByRun]:
        found = runs.audits[audit]
        rounds = range(runs.plans[audit].training.rounds)
        best = [find_best_round(found, TABLE_ATTACK, "l1", rounds)]
        return [
            run_means(found, name, best, score, users)
            for name in (plugin_label(attack), TABLE_ATTACK)
        ]

    def twice(users: Collection[int], runs: StudyRuns, _: object) -> Statistics:
        without, whole = by_attack("l1", users, runs)
        return {"l1": difference(without, whole, 2.0)}

    def unchanged(runs: StudyRuns, _: object) -> Statistics:
        changes = [by_attack("l1", [user], runs) for user in ALL_CLASSES]
        moved = [combine(lambda one, other: abs(one - other), *pair) for pair in changes]
        return {"l1": over_runs(combine(lambda *values: float(np.mean(values)), *moved))}

    def null_found(runs: StudyRuns, _: object) -> Statistics:
        return {"null_recall": over_runs(by_attack("null_recall", None, runs)[0])}

    if not attack.null_removal:
        return (
            Conclusion(
                "all_classes",
                "Decaf can still accurately attack the first four users with all classes "
                "without Null Classes Removal",
                unchanged,
                "below",
                0.02,
                words="change of the L1 of users 1 to 4",
            ),
            Conclusion(
                "null_classes",
                "the distance of users 5-10 who do own null classes is [lost] times larger "
                "than the baseline attack with the Null Classes Removal step applied",
                partial(twice, NULL_CLASSES),
                words="L1 of users 5 to 10 without null removal, less twice that with it",
            ),
        )
    return (
        Conclusion(
            "all_classes",
            "Decaf can not even work well on users 1-4 who have all classes. The distance is "
            "also [lost] times larger than the baseline attack",
            partial(twice, ALL_CLASSES),
            words="L1 of users 1 to 4 without calibrator, less twice that with it",
        ),
        Conclusion(
            "null_found",
            "the accuracy of inferring real null classes can still be maintained at 100%",
            null_found,
            margin=0.9,
            words="share of the null classes that are found",
        ),
    )


def network_conclusions(pairs: Mapping[str, tuple[str, str]]) -> tuple[Conclusion, ...]:
    """Return what the paper says of Figure 13, in the best round of each network.

    Args:
        pairs: the audits of ResNet18 and of VGG16, by data set.

    """

    def best(runs: StudyRuns, name: str, score: str) -> ByRun:
        audit = runs.audits[name]
        rounds = range(runs.plans[name].training.rounds)
        number = find_best_round(audit, ATTACK, "l1", rounds)
        return run_means(audit, ATTACK, [number], score)

    def grows(runs: StudyRuns, _: object) -> Statistics:
        return {
            data: difference(best(runs, larger, "l1"), best(runs, smaller, "l1"))
            for data, (smaller, larger) in pairs.items()
        }

    def each(score: str, runs: StudyRuns, _: object) -> Statistics:
        return {name: over_runs(best(runs, name, score)) for name in runs.audits}

    return (
        Conclusion(
            "complexity",
            "On the CIFAR-10 and FER-2013, the distance increases with the model complexity",
            grows,
            words="L1 with VGG16 less L1 with ResNet18",
        ),
        Conclusion(
            "works",
            "the distance is still around 0.2",
            partial(each, "l1"),
            "below",
            0.25,
            words="mean L1 (the norm is lost; the largest published mean is 0.234)",
        ),
        Conclusion(
            "null_exact",
            "Decaf achieves 100% accuracy in determining any victim user's null classes",
            partial(each, "null_exact"),
            margin=0.9,
            words="share of users whose set of null classes is exact",
        ),
    )
