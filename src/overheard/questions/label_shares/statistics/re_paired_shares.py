"""Claims about label shares, compared with partitions drawn anew or with permuted clients."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from jaxtyping import Float

from overheard.core.parties import COHORT, Party
from overheard.core.seeds import Seed
from overheard.findings.finding import Finding
from overheard.findings.re_paired_fits import (
    RePairedFits,
    no_test,
    number_values,
    planned_by_attack,
    re_pair_units,
    smallest_p_value,
)
from overheard.questions.label_shares.statistics.share_fits import share_fits
from overheard.statistics.person_pairings import group_by_runs


def re_pair_shares(findings: Sequence[Finding], seed: Seed) -> RePairedFits:
    """Return how well the claims fit the true shares, and other possible ones.

    In a simulation the others are those of partitions drawn anew, the same ones for all attacks
    (`Finding.redrawn_fits`); a partition of a number counts for all runs together. In a
    recording, and if the plan states the shares of each client, clients are permuted within a
    run, and alike in all runs. The cohorts of several runs are then permuted between runs.
    """
    by_attack = planned_by_attack(findings)
    planned = [finding for members in by_attack.values() for finding in members]
    if not planned:
        return no_test("no claim was checked")
    sizes = {len(finding.redrawn_fits) for finding in planned}
    if len(sizes) > 1 or 0 in sizes:
        return _permute_clients(planned, list(by_attack), seed)
    fits = [
        np.sum([finding.redrawn_fits for finding in members], axis=0)
        if members
        else np.full(max(sizes), np.nan)
        for members in by_attack.values()
    ]
    return RePairedFits(np.stack(fits, axis=1), smallest_p_value(max(sizes), max(sizes)))


def _permute_clients(
    planned: Sequence[Finding], attacks: Sequence[str], seed: Seed
) -> RePairedFits:
    is_cohort = planned[0].target == COHORT
    targets = list(dict.fromkeys((finding.cell.seed, finding.target) for finding in planned))
    truths = {(finding.cell.seed, finding.target): finding.true for finding in planned}
    # Cohorts are exchanged between runs, clients within a run.
    run_of = {place: 0 if is_cohort else place[0] for place in targets}
    unit_of = {
        place: place[0] if is_cohort else _client_of(place[0], place[1], truths)
        for place in targets
    }
    runs, units = number_values(run_of.values()), number_values(unit_of.values())
    true_shares = np.full((len(runs), len(units), len(planned[0].true)), np.nan)
    for place in targets:
        true_shares[runs[run_of[place]], units[unit_of[place]]] = truths[place]
    unit_numbers = np.array([units[unit_of[place]] for place in targets])
    run_numbers = np.array([runs[run_of[place]] for place in targets])
    fits = share_fits(
        _claims(planned, attacks, targets), unit_numbers, run_numbers, true_shares
    )
    kinds: list[Hashable] = [shares.tobytes() for shares in true_shares.swapaxes(0, 1)]
    groups = group_by_runs(unit_numbers, run_numbers, len(units))
    return re_pair_units(fits, groups, kinds, seed)


def _client_of(
    run: int, target: Party, truths: Mapping[tuple[int, Party], tuple[float, ...]]
) -> Party:
    """Return the first target with the same shares: a client may have many pseudonyms."""
    return next(
        other
        for (number, other), shares in truths.items()
        if number == run and shares == truths[run, target]
    )


def _claims(
    planned: Sequence[Finding], attacks: Sequence[str], targets: Sequence[tuple[int, Party]]
) -> Float[np.ndarray, "attacks targets classes"]:
    place_of = {place: number for number, place in enumerate(targets)}
    claims = np.full((len(attacks), len(targets), len(planned[0].true)), np.nan)
    for finding in planned:
        place = place_of[finding.cell.seed, finding.target]
        claims[attacks.index(finding.cell.attack), place] = finding.claimed
    return claims
