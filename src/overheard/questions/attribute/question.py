"""The question: the value of an attribute of the user behind a sender."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import factorial
from types import MappingProxyType
from typing import final

import numpy as np
from jaxtyping import Float, Int

from overheard.core.known_facts.known_users import KnownUsers
from overheard.core.seeds import Seed
from overheard.core.true_facts.attributes import Attributes
from overheard.core.true_facts.users_of_clients import UsersOfClients
from overheard.findings.controlled_findings import (
    ControlledFindings,
    control_mean,
    group_with_controls,
    planned_by_attack,
)
from overheard.findings.finding import ArmRun, Finding
from overheard.findings.planned_sizes import PlannedSizes
from overheard.findings.question import Question
from overheard.findings.score_row import CONTROL_NAME, ScoreRow
from overheard.questions.attribute.claim import Attribute
from overheard.questions.attribute.measures import MEASURES
from overheard.questions.attribute.scorer import AttributeScorer
from overheard.statistics.bootstrap import ResampledRun, bootstrap_mean
from overheard.statistics.permutation_test import (
    RePairedFits,
    group_by_runs,
    log_fit,
    no_test,
    number_values,
    re_pair_units,
    sum_by_user,
)


@final
@dataclass(frozen=True, slots=True)
class AttributeQuestion(Question[Attribute]):
    """The value of an attribute of the user behind a sender."""

    name = "attribute"
    source = AttributeScorer.source
    measures = MEASURES
    reads = (UsersOfClients, Attributes)
    gives = (KnownUsers,)
    margins = MappingProxyType({"accuracy": 0.10})
    control = "permutation"
    is_about_users = True
    needs_all_rounds = True

    @property
    def scorer(self) -> AttributeScorer:
        """The scorer of this question."""
        return AttributeScorer()

    def references(
        self, score: str, planned: Sequence[Finding], control: Sequence[Finding]
    ) -> Mapping[str, float]:
        """Return the control's mean."""
        return control_mean(score, control)

    def summary_rows(self, findings: Sequence[Finding], seed: Seed) -> Sequence[ScoreRow]:
        """Return rows of `balanced_accuracy`, the mean over true values, by attack and arm.

        The uninformed guess always claims the same value. The control is a reference.
        """
        return tuple(
            row
            for comparison in group_with_controls(findings)
            for row in _balanced_accuracy_rows(comparison, comparison.interval_seed(seed))
        )

    def re_paired_fits(
        self, findings: Sequence[Finding], runs: Sequence[ArmRun], seed: Seed
    ) -> RePairedFits:
        """Compare claims with the attributes of permuted users."""
        return re_pair_attributes(findings, seed)

    def count_planned_pairings(self, sizes: PlannedSizes) -> int:
        """Return the number of permutations of users; fewer if many have the same value."""
        return factorial(sizes.targets)


def re_pair_attributes(findings: Sequence[Finding], seed: Seed) -> RePairedFits:
    """Return how well the claims fit the users behind the targets, and other users.

    Users are permuted with all their targets, and alike in all runs.
    """
    by_attack = planned_by_attack(findings)
    planned = [finding for members in by_attack.values() for finding in members]
    if not planned:
        return no_test("no claim was checked")
    users = number_values(finding.true_user for finding in planned)
    seeds = number_values(finding.cell.seed for finding in planned)
    numbers = np.array([users[finding.true_user] for finding in planned])
    runs = np.array([seeds[finding.cell.seed] for finding in planned])
    fits, values = [], []
    for members in by_attack.values():
        value_of = {users[finding.true_user]: _true_value(finding) for finding in members}
        names = members[0].claimed.candidates if members else ()
        values.append([value_of.get(number) for number in range(len(users))])
        fits.append(
            attribute_fits(
                np.array([finding.claimed.numbers for finding in members]),
                np.array([users[finding.true_user] for finding in members]),
                np.array([seeds[finding.cell.seed] for finding in members]),
                np.array([names.index(v) if v in names else -1 for v in values[-1]]),
            )
            if members
            else np.full((len(users),) * 2, np.nan)
        )
    groups = group_by_runs(numbers, runs, len(users))
    kinds = list(zip(*values, strict=True))
    return re_pair_units(np.stack(fits), groups, kinds, seed)


def _true_value(finding: Finding) -> str | None:
    """Return the true value; None if the attack does not consider it."""
    place, candidates = int(np.argmax(finding.true_numbers)), finding.claimed.candidates
    return candidates[place] if place < len(candidates) else None


def attribute_fits(
    claims: Float[np.ndarray, "targets values"],
    users: Int[np.ndarray, " targets"],
    runs: Int[np.ndarray, " targets"],
    values: Int[np.ndarray, " users"],
) -> Float[np.ndarray, "users users"]:
    """Return how well the claims about each user fit the true value of every user.

    It is the sum over the user's targets of `log_fit` of the claimed probability, less the
    mean of the run.

    Args:
        claims: the claimed probability of each value.
        users: the user behind each target.
        runs: the run of each target.
        values: the true value of each user; -1 = none of those claimed.

    """
    with_none = np.append(claims, np.zeros((len(users), 1)), axis=1)
    of_users = log_fit(with_none)[:, values]  # (targets, users)
    return sum_by_user(of_users, users, runs, len(values))


def _balanced_accuracy_rows(comparison: ControlledFindings, seed: Seed) -> list[ScoreRow]:
    runs, control = count_by_value(comparison.planned), count_by_value(comparison.control)
    if not runs:
        return []
    references = (
        {CONTROL_NAME: _mean(run.balanced_accuracy().value() for run in control)}
        if control
        else {}
    )
    value = bootstrap_mean([run.balanced_accuracy() for run in runs], seed.child("balanced"))
    uninformed = {"always the same": _mean(1 / run.correct.shape[1] for run in runs)}
    return [comparison.make_row("balanced_accuracy", "higher", value, uninformed, references)]


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


@final
@dataclass(frozen=True, slots=True)
class AttributeCounts:
    """Counts of correct claims and of all claims in one run.

    Args:
        correct: correct claims by user and true value.
        total: all claims by user and true value.

    """

    correct: Float[np.ndarray, "users values"]
    total: Float[np.ndarray, "users values"]

    def balanced_accuracy(self) -> ResampledRun:
        """Return the mean over true values of the rate of correct claims."""
        return ResampledRun(
            len(self.correct), 0, partial(_balanced_accuracy, self.correct, self.total)
        )


def count_by_value(findings: Iterable[Finding]) -> tuple[AttributeCounts, ...]:
    """Count the findings about an attribute, run by run."""
    by_seed: dict[int, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_seed[finding.cell.seed].append(finding)
    return tuple(_count_run(run) for _, run in sorted(by_seed.items()))


def _count_run(findings: Sequence[Finding]) -> AttributeCounts:
    # A true value outside the candidates has an index beyond them.
    true = [
        dict(enumerate(finding.claimed.candidates)).get(
            int(np.argmax(finding.true_numbers)), ""
        )
        for finding in findings
    ]
    _, value = np.unique(true, return_inverse=True)
    _, user = np.unique(
        [finding.true_user or finding.target for finding in findings], return_inverse=True
    )
    is_correct = [
        sum(score.value for score in finding.scores if score.name == "accuracy")
        for finding in findings
    ]
    values, users = int(value.max()) + 1, int(user.max()) + 1
    index = user * values + value
    tables = (np.bincount(index, weights, users * values) for weights in (is_correct, None))
    return AttributeCounts(
        *(table.reshape(users, values).astype(np.float64) for table in tables)
    )


def _balanced_accuracy(
    right: Float[np.ndarray, "users values"],
    asked: Float[np.ndarray, "users values"],
    multiplicities: Int[np.ndarray, "draws users"],
) -> Float[np.ndarray, " draws"]:
    counts = multiplicities @ asked  # (draws, values)
    # Values without a drawn user are left out of the mean.
    rates = (multiplicities @ right) / np.maximum(counts, 1)
    means: Float[np.ndarray, " draws"] = rates.sum(1) / (counts > 0).sum(1)
    return means
