"""Claims about label shares, compared with partitions drawn anew or with permuted clients."""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import cast

import numpy as np
from jaxtyping import Float, Int

from overheard.core.parties import COHORT, Party
from overheard.core.seeds import Seed
from overheard.findings.controlled_findings import planned_by_attack
from overheard.findings.finding import Finding
from overheard.statistics.permutation_test import (
    TIE,
    RePairedFits,
    group_by_runs,
    log_fit,
    no_test,
    number_values,
    re_pair_units,
    sum_by_user,
)

ROUNDED = 9
"""Decimals to which shares are compared."""


def re_pair_shares(findings: Sequence[Finding], seed: Seed) -> RePairedFits:
    """Return how well the claims fit the true shares, and other possible ones.

    In a simulation the others are those of partitions drawn anew, the same ones for all attacks
    (`Finding.fits`); a partition of a number counts for all runs together. In a
    recording, and if the plan states the shares of each client, clients are permuted within a
    run, and alike in all runs. The cohorts of several runs are then permuted between runs.
    """
    by_attack = planned_by_attack(findings)
    planned = [finding for members in by_attack.values() for finding in members]
    if not planned:
        return no_test("no claim was checked")
    sizes = {len(finding.fits) for finding in planned}
    if len(sizes) > 1 or 0 in sizes:
        return _permute_clients(planned, list(by_attack), seed)
    fits = [
        np.sum([finding.fits for finding in members], axis=0)
        if members
        else np.full(max(sizes), np.nan)
        for members in by_attack.values()
    ]
    return RePairedFits(np.stack(fits, axis=1), _share_of_equal_partitions(planned))


def _share_of_equal_partitions(planned: Sequence[Finding]) -> float:
    """Return the share of partitions in which every target holds what it really holds.

    They fit every claim as well as the true one, which is counted. Where few users are
    permuted, there are many of them.
    """
    fits = np.array([finding.fits for finding in planned])  # (claims, partitions)
    is_equal = np.isclose(fits, fits[:, :1], rtol=TIE, atol=0, equal_nan=True)
    return float(is_equal.all(0).mean())


def _permute_clients(
    planned: Sequence[Finding], attacks: Sequence[str], seed: Seed
) -> RePairedFits:
    is_cohort = planned[0].target == COHORT
    targets = list(dict.fromkeys((finding.cell.seed, finding.target) for finding in planned))
    truths = {(finding.cell.seed, finding.target): finding.true_numbers for finding in planned}
    # Cohorts are exchanged between runs, clients within a run.
    run_of = {place: 0 if is_cohort else place[0] for place in targets}
    clients = _clients_of(planned)
    unit_of = {place: place[0] if is_cohort else clients[place] for place in targets}
    runs, units = number_values(run_of.values()), number_values(unit_of.values())
    unit_numbers = np.array([units[unit_of[place]] for place in targets])
    run_numbers = np.array([runs[run_of[place]] for place in targets])
    # A client with several pseudonyms may hold other data under each: take the mean.
    true_shares = np.zeros((len(runs), len(units), len(planned[0].true_numbers)))
    counts = np.zeros((len(runs), len(units), 1))
    np.add.at(true_shares, (run_numbers, unit_numbers), [truths[place] for place in targets])
    np.add.at(counts, (run_numbers, unit_numbers), 1)
    true_shares = np.where(counts > 0, true_shares / np.maximum(counts, 1), np.nan)
    fits = share_fits(
        _claims(planned, attacks, targets), unit_numbers, run_numbers, true_shares
    )
    # Means of the same shares may differ by rounding.
    kinds: list[Hashable] = [
        shares.round(ROUNDED).tobytes() for shares in true_shares.swapaxes(0, 1)
    ]
    groups = group_by_runs(unit_numbers, run_numbers, len(units))
    return re_pair_units(fits, groups, kinds, seed)


def _clients_of(
    planned: Sequence[Finding],
) -> Mapping[tuple[int, Party], Party]:
    """Return the client behind each target, or the first target of the same client.

    A client may have many pseudonyms. If they are not the audit's own, two targets of a run are
    taken for one client if they have the same shares and sent in different rounds.
    """
    client_of = dict[tuple[int, Party], Party]()
    rounds_of: dict[tuple[int, Party], set[int]] = defaultdict(set)
    alike: dict[tuple[int, tuple[float, ...]], list[Party]] = defaultdict(list)
    for finding in planned:
        run, target, sent = finding.cell.seed, finding.target, set(finding.sent_rounds)
        if (run, target) in client_of:
            continue
        if finding.client:
            client_of[run, target] = Party(finding.client)
            continue
        known = alike[run, finding.true_numbers]
        same = next((one for one in known if not rounds_of[run, one] & sent), target)
        if same == target:
            known.append(target)
        client_of[run, target] = same
        rounds_of[run, same] |= sent
    return client_of


def _claims(
    planned: Sequence[Finding], attacks: Sequence[str], targets: Sequence[tuple[int, Party]]
) -> Float[np.ndarray, "attacks targets classes"]:
    place_of = {place: number for number, place in enumerate(targets)}
    claims = np.full((len(attacks), len(targets), len(planned[0].true_numbers)), np.nan)
    for finding in planned:
        place = place_of[finding.cell.seed, finding.target]
        claims[attacks.index(finding.cell.attack), place] = finding.claimed.numbers
    return claims


ENTROPY_WEIGHT = 0.5
"""Weight of the truth's own logarithms in `redrawn_share_fits`: of 0, 0.5 and 1 the one that
finds most claims, from perfect ones about one client to those with a fifth of the truth."""


def redrawn_share_fits(
    claims: Float[np.ndarray, "attacks targets classes"],
    truths: Float[np.ndarray, "partitions targets classes"],
) -> Float[np.ndarray, "partitions attacks"]:
    """Return how well all claims of each attack fit each partition.

    With true shares p and claimed shares q it is the sum over targets and labels of
    p (log_fit(q) - log_fit(p) / 2). Without the second term, weak claims are found with the
    fewest clients, but shares that are more uneven than the true ones fit a perfect claim
    better. With the whole term, the negative divergence of Kullback and Leibler, it is the
    reverse.

    Args:
        claims: the claimed shares.
        truths: the true shares first, then those of partitions drawn anew.

    """
    sums = np.tensordot(truths, log_fit(claims), axes=([1, 2], [1, 2]))
    own = (truths * log_fit(truths)).sum((1, 2)) * ENTROPY_WEIGHT
    return cast("Float[np.ndarray, 'partitions attacks']", sums - own[:, None])


def share_fits(
    claims: Float[np.ndarray, "attacks targets classes"],
    units: Int[np.ndarray, " targets"],
    runs: Int[np.ndarray, " targets"],
    truths: Float[np.ndarray, "runs units classes"],
) -> Float[np.ndarray, "attacks units units"]:
    """Return how well the claims about each unit fit the true shares of every unit.

    The mean over the targets of a run is subtracted: what they have in common is no difference
    between them.

    Args:
        claims: the claimed shares; NaN = the attack claims nothing about this target.
        units: what is exchanged: the client or the run behind each target.
        runs: the run of each target.
        truths: the true shares of each unit in each run; NaN = it takes no part.

    """
    fits = []
    for shares in claims:
        of_units = np.einsum("tc,tuc->tu", log_fit(shares), truths[runs])
        fits.append(sum_by_user(of_units, units, runs, truths.shape[1]))
    return np.stack(fits)
