"""Claims about words, compared with clients that are permuted."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int

from overheard.core.parties import COHORT, Party, party_sort_key
from overheard.core.seeds import Seed
from overheard.findings.finding import Finding
from overheard.findings.re_paired_fits import (
    RePairedFits,
    no_test,
    number_values,
    planned_by_attack,
    re_pair_units,
)
from overheard.statistics.person_pairings import group_by_runs, sum_by_person

ROUNDED = 9
"""Decimals to which fits are compared."""

Place = tuple[int, Party]
"""A target in a run, which is named by its seed."""


def re_pair_words(findings: Sequence[Finding], seed: Seed) -> RePairedFits:
    """Return how well the claims fit the words of their targets, and those of other clients.

    Clients, or the users whom they stand for, are permuted with all their targets, and alike in
    all runs.
    """
    by_attack = planned_by_attack(findings)
    planned = [finding for members in by_attack.values() for finding in members]
    if not planned:
        return no_test("no claim was checked")
    if any(finding.target == COHORT for finding in planned):
        return no_test("a claim about all clients together has no others to compare with")
    targets_of = _targets_by_run(planned)
    if any(len(finding.fits) != 1 + len(targets_of[finding.cell.seed]) for finding in planned):
        return no_test("some clients have no claim, or are too many to compare with each other")
    unit_of = _number_units(planned)
    runs = number_values(run for run, _ in unit_of)
    count = len(set(unit_of.values()))
    fits, columns = [], list[Float[np.ndarray, "units targets"]]()
    for members in by_attack.values():
        if not members:
            fits.append(np.full((count, count), np.nan))
            continue
        by_unit = np.stack([_fits_by_unit(one, targets_of, unit_of, count) for one in members])
        units = np.array([unit_of[one.cell.seed, one.target] for one in members])
        numbers = np.array([runs[one.cell.seed] for one in members])
        fits.append(sum_by_person(by_unit, units, numbers, count))
        columns.append(by_unit.T)
    units = np.array(list(unit_of.values()))
    groups = group_by_runs(units, np.array([runs[run] for run, _ in unit_of]), count)
    # Users of the same words fit every claim equally.
    kinds = [one.round(ROUNDED).tobytes() for one in np.concatenate(columns, axis=1)]
    return re_pair_units(np.stack(fits), groups, kinds, seed)


def _targets_by_run(planned: Sequence[Finding]) -> Mapping[int, Sequence[Party]]:
    """Return the targets of each run in the order of the fits."""
    targets: dict[int, set[Party]] = defaultdict(set)
    for finding in planned:
        targets[finding.cell.seed].add(finding.target)
    return {run: sorted(named, key=party_sort_key) for run, named in targets.items()}


def _number_units(planned: Sequence[Finding]) -> Mapping[Place, int]:
    """Return the number of the user or client behind each target; it is the same in all runs.

    A client may have a pseudonym for each round.
    """
    places = {(one.cell.seed, one.target): one for one in planned}
    names = {place: one.true_user or one.client or one.target for place, one in places.items()}
    numbers = number_values(names.values())
    return {place: numbers[name] for place, name in names.items()}


def _fits_by_unit(
    finding: Finding,
    targets_of: Mapping[int, Sequence[Party]],
    unit_of: Mapping[Place, int],
    count: int,
) -> Float[np.ndarray, " units"]:
    """Return how well a claim fits the words of each unit; NaN if it takes no part in the run.

    A unit with several pseudonyms has the mean over them.
    """
    run = finding.cell.seed
    units: Int[np.ndarray, " targets"] = np.array(
        [unit_of[run, target] for target in targets_of[run]]
    )
    sums = np.bincount(units, np.array(finding.fits[1:]), count)
    members = np.bincount(units, minlength=count)
    with np.errstate(invalid="ignore"):
        means: Float[np.ndarray, " units"] = np.where(members > 0, sums / members, np.nan)
    return means
