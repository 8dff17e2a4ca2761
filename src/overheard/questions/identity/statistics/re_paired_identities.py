"""Claims about identities, compared with people who are permuted."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from overheard.core.seeds import Seed
from overheard.findings.finding import Finding
from overheard.findings.re_paired_fits import (
    RePairedFits,
    no_test,
    number_values,
    planned_by_attack,
    re_pair_units,
)
from overheard.questions.identity.statistics.identity_fits import identity_fits
from overheard.statistics.person_pairings import group_by_runs


def re_pair_identities(findings: Sequence[Finding], seed: Seed) -> RePairedFits:
    """Return how well the claims fit the known users behind the targets, and other users.

    Users are permuted with all their targets, and alike in all runs. Targets of users that the
    attacker does not know are left out.
    """
    by_attack = {
        attack: [one for one in members if one.true_user in one.candidates]
        for attack, members in planned_by_attack(findings).items()
    }
    planned = [finding for members in by_attack.values() for finding in members]
    if not planned:
        return no_test("no target is a known user")
    people = number_values(str(finding.true_user) for finding in planned)
    seeds = number_values(finding.cell.seed for finding in planned)
    numbers = np.array([people[str(finding.true_user)] for finding in planned])
    runs = np.array([seeds[finding.cell.seed] for finding in planned])
    fits = [_fits(members, people) for members in by_attack.values()]
    groups = group_by_runs(numbers, runs, len(people))
    return re_pair_units(np.stack(fits), groups, range(len(people)), seed)


def _fits(
    members: Sequence[Finding], people: Mapping[str, int]
) -> Float[np.ndarray, "people people"]:
    """Return the fits of one attack, summed over runs; runs may have other known users."""
    by_run: dict[tuple[int, tuple[str, ...]], list[Finding]] = defaultdict(list)
    for finding in members:
        by_run[finding.cell.seed, finding.candidates].append(finding)
    fits = (
        np.zeros((len(people), len(people))) if members else np.full((len(people),) * 2, np.nan)
    )
    for (_, candidates), in_run in by_run.items():
        place_of = {user: place for place, user in enumerate(candidates)}
        fits += identity_fits(
            np.array([finding.claimed for finding in in_run])[None],
            np.array([people[str(finding.true_user)] for finding in in_run]),
            np.zeros(len(in_run), dtype=np.int64),
            np.array([place_of.get(user, -1) for user in people]),
        )[0]
    return fits
