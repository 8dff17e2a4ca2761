"""Claims about attributes, compared with people who are permuted."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from overheard.core.seeds import Seed
from overheard.findings.finding import Finding
from overheard.findings.re_paired_fits import (
    RePairedFits,
    no_test,
    number_values,
    planned_by_attack,
    re_pair_units,
)
from overheard.statistics.pairing_sums import log_fit
from overheard.statistics.person_pairings import group_by_runs, sum_by_person


def re_pair_attributes(findings: Sequence[Finding], seed: Seed) -> RePairedFits:
    """Return how well the claims fit the people behind the targets, and other people.

    People are permuted with all their targets, and alike in all runs.
    """
    by_attack = planned_by_attack(findings)
    planned = [finding for members in by_attack.values() for finding in members]
    if not planned:
        return no_test("no claim was checked")
    people = number_values(finding.true_user for finding in planned)
    seeds = number_values(finding.cell.seed for finding in planned)
    numbers = np.array([people[finding.true_user] for finding in planned])
    runs = np.array([seeds[finding.cell.seed] for finding in planned])
    fits, values = [], []
    for members in by_attack.values():
        value_of = {people[finding.true_user]: _true_value(finding) for finding in members}
        names = members[0].claimed.candidates if members else ()
        values.append([value_of.get(number) for number in range(len(people))])
        fits.append(
            attribute_fits(
                np.array([finding.claimed.numbers for finding in members])[None],
                np.array([people[finding.true_user] for finding in members]),
                np.array([seeds[finding.cell.seed] for finding in members]),
                np.array([names.index(v) if v in names else -1 for v in values[-1]]),
            )[0]
            if members
            else np.full((len(people),) * 2, np.nan)
        )
    groups = group_by_runs(numbers, runs, len(people))
    kinds = list(zip(*values, strict=True))
    return re_pair_units(np.stack(fits), groups, kinds, seed)


def _true_value(finding: Finding) -> str | None:
    """Return the true value; None if the attack does not consider it."""
    place, candidates = int(np.argmax(finding.true_numbers)), finding.claimed.candidates
    return candidates[place] if place < len(candidates) else None


def attribute_fits(
    claims: Float[np.ndarray, "attacks targets values"],
    people: Int[np.ndarray, " targets"],
    runs: Int[np.ndarray, " targets"],
    values: Int[np.ndarray, " people"],
) -> Float[np.ndarray, "attacks people people"]:
    """Return how well the claims about each person fit the true value of every person.

    It is the sum over the person's targets of `log_fit` of the claimed probability, less the
    mean of the run.

    Args:
        claims: the claimed probability of each value.
        people: the person behind each target.
        runs: the run of each target.
        values: the true value of each person; -1 = none of those claimed.

    """
    fits = []
    for probabilities in claims:
        with_none = np.append(probabilities, np.zeros((len(people), 1)), axis=1)
        of_people = log_fit(with_none)[:, values]  # (targets, people)
        fits.append(sum_by_person(of_people, people, runs, len(values)))
    return np.stack(fits)
