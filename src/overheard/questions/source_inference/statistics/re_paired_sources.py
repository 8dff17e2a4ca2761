"""Claims about sources, compared with sources that are permuted among records."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import prod
from typing import final

import numpy as np
from jaxtyping import Float, Int

from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.findings.controlled_findings import planned_by_attack
from overheard.findings.finding import ArmRun, Finding
from overheard.questions.source_inference.scorer import (
    NOT_COUNTED,
    RECORD_SCORES,
    held_chances,
    source_columns,
)
from overheard.statistics.permutation_test import (
    RePairedFits,
    count_arrangements,
    log_fit,
    no_test,
    number_values,
    re_pair_runs,
    smallest_p_value,
)

HEADLINE = "source_accuracy"

NOBODY = 0
"""The number of the source that is no client. Clients follow."""

ENTRIES_AT_ONCE = 2_000_000
"""Entries of a table that are gathered at a time: 16 MB."""

TAKE_CANARIES = (
    "the records of a client belong together, as those of one user do or those cut from one "
    "original, so style alone could tell who holds a record: take canaries"
)

DRAW_CANARIES = (
    "So style alone could tell who holds a record: draw canaries before the next run "
    "(`overheard canaries`)"
)


def re_pair_sources(
    findings: Sequence[Finding], runs: Sequence[ArmRun], seed: Seed
) -> RePairedFits:
    """Return how well the claims fit the sources of records, and permuted sources.

    The source of a record is the client that holds it, or no client. Sources are permuted among
    the held records of one label, since clients may differ in their labels; those of canaries
    among all held ones, since each was assigned at random with the same odds. Records of no
    client stay so: a claim that is surer of held records, and knows the labels of clients,
    would fit the true sources best without knowing any. What claims gain by labels alone, or by
    sizes, is in `common_gains`.
    """
    by_attack = {
        attack: [finding for finding in members if finding.scores]
        for attack, members in planned_by_attack(findings).items()
    }
    by_run: dict[int, list[Finding]] = defaultdict(list)
    for finding in (finding for members in by_attack.values() for finding in members):
        by_run[finding.cell.seed].append(finding)
    if not by_run:
        return no_test("no claim was checked")
    of_run = {run.seed: run for run in runs if not run.is_control}
    for run in of_run.values():
        difference = run.record_difference
        if difference is not None and not difference.is_small("clients"):
            return no_test(f"{difference.sentence('clients')}. {DRAW_CANARIES}")
    groups = {
        number: _groups(of_run[number], _count_records(members[0]))
        for number, members in by_run.items()
        if number in of_run
    }
    tables = [
        _Records(by_run[number], list(by_attack), one)
        for number, one in groups.items()
        if one is not None
    ]
    if len(tables) < len(by_run):
        return no_test(TAKE_CANARIES)
    pairings = re_pair_runs([table.groups for table in tables], seed)
    sums = np.sum(
        [table.fits(one) for table, one in zip(tables, pairings, strict=True)], axis=0
    )
    counts = np.array([len(members) for members in by_attack.values()])
    gains = np.sum([table.label_gains() for table in tables], axis=0) / counts.clip(1)
    return RePairedFits(
        np.where(counts > 0, sums, np.nan),
        smallest_p_value(prod(table.arrangements for table in tables), len(sums)),
        common_gains=tuple(gains.tolist()),
    )


def _count_records(finding: Finding) -> int:
    return len(finding.true_numbers) // (len(finding.targets) + 1)


def _groups(run: ArmRun, records: int) -> Int[np.ndarray, " records"] | None:
    """Return the group of each candidate record; None if no two may be exchanged."""
    if run.record_exchange == "all":
        return np.zeros(records, dtype=np.int64)
    if run.record_exchange == "same label" and len(run.record_labels) == records:
        return np.array(run.record_labels)
    return None


@final
class _Records:
    """The candidate records of one run, with the claims of all attacks about them."""

    def __init__(
        self,
        findings: Sequence[Finding],
        attacks: Sequence[str],
        groups: Int[np.ndarray, " records"],
    ) -> None:
        parties = number_values(
            source for finding in findings for source in _identify_sources(finding)
        )
        numbers = {source: NOBODY + 1 + number for source, number in parties.items()}
        sources = np.full(len(groups), NOT_COUNTED)
        claims = [_Claim(finding, numbers) for finding in findings]
        for claim in claims:
            sources = np.where(claim.sources == NOT_COUNTED, sources, claim.sources)
        is_counted = sources != NOT_COUNTED
        labels = groups[is_counted]
        self._sources = sources[is_counted]
        self.groups = 2 * labels + (self._sources != NOBODY)
        self._evidence = np.zeros((len(attacks), len(self.groups), len(parties) + 1))
        self._gains = np.zeros(len(attacks))
        for finding, claim in zip(findings, claims, strict=True):
            attack = attacks.index(finding.cell.attack)
            self._evidence[attack] = claim.evidence[is_counted]
            expected = expected_accuracy(claim.hits[is_counted], self._sources, labels)
            self._gains[attack] = max(0.0, expected - claim.guess)

    @property
    def arrangements(self) -> int:
        """The number of different ways to assign the sources."""
        return count_arrangements(self.groups.tolist(), self._sources.tolist())

    def fits(
        self, pairings: Int[np.ndarray, "pairings records"]
    ) -> Float[np.ndarray, "pairings attacks"]:
        """Return the fit of each attack; 0 for one without claims here."""
        sums = np.zeros((len(pairings), len(self._evidence)))
        records = np.arange(len(self._sources))
        step = max(1, ENTRIES_AT_ONCE // len(records))
        for start in range(0, len(pairings), step):
            part = self._sources[pairings[start : start + step]]
            for place, evidence in enumerate(self._evidence):
                sums[start : start + step, place] = evidence[records, part].sum(1)
        return sums

    def label_gains(self) -> Float[np.ndarray, " attacks"]:
        """Return what the claims of each attack gain over guesses by labels alone."""
        return self._gains


_Source = tuple[int, ...] | Party
"""A client as the records that it holds, or by its name if it holds none."""


def _true_columns(finding: Finding) -> Int[np.ndarray, " records"]:
    """Return the column of each record's source in a claim."""
    return source_columns(np.reshape(finding.true_numbers, (-1, len(finding.targets) + 1)))


def _identify_sources(finding: Finding) -> list[_Source]:
    """Return the clients of a claim, alike under their names and under pseudonyms."""
    truth = _true_columns(finding)
    held = [tuple(np.flatnonzero(truth == one).tolist()) for one in range(len(finding.targets))]
    return [records or party for records, party in zip(held, finding.targets, strict=True)]


@final
class _Claim:
    """The claim of one attack about the records of a run, by the numbers of all sources."""

    def __init__(self, finding: Finding, numbers: Mapping[_Source, int]) -> None:
        width = len(finding.targets) + 1
        columns = np.array([*(numbers[one] for one in _identify_sources(finding)), NOBODY])
        truth = _true_columns(finding)
        self.sources = np.where(truth == NOT_COUNTED, NOT_COUNTED, columns[truth])
        chances = held_chances(np.reshape(finding.claimed.numbers, (-1, width)))
        self.evidence = np.zeros((len(truth), len(numbers) + 1))
        self.evidence[:, columns[:-1]] = client_evidence(chances)
        is_first = chances == chances.max(1, keepdims=True)
        self.hits = np.zeros_like(self.evidence)
        self.hits[:, columns[:-1]] = is_first / is_first.sum(1, keepdims=True)
        (score,) = (one for one in finding.scores if one.name == HEADLINE)
        self.guess = score.best_uninformed or 0.0


def client_evidence(
    chances: Float[np.ndarray, "records clients"],
) -> Float[np.ndarray, "records clients"]:
    """Return the log probability of each client, less its mean over the clients.

    A client drawn at random has 0 on average for each record. So a claim that knows which
    records are held at all, and not by whom, is no better for the true sources than for others.
    """
    logs = log_fit(chances)
    evidence: Float[np.ndarray, "records clients"] = logs - logs.mean(1, keepdims=True)
    return evidence


def expected_accuracy(
    hits: Float[np.ndarray, "records sources"],
    sources: Int[np.ndarray, " records"],
    groups: Int[np.ndarray, " records"],
) -> float:
    """Return the mean accuracy over all permutations of sources within groups.

    Args:
        hits: for each record and source, how far the claim names it; 0 for `NOBODY`.
        sources: the source of each record.
        groups: the group of each record.

    """
    total = 0.0
    for group in np.unique(groups):
        in_group = groups == group
        held = np.bincount(sources[in_group], minlength=hits.shape[1])
        total += float(held @ hits[in_group].mean(0))
    return total / max(1, int((sources != NOBODY).sum()))


def record_scores_by_client(finding: Finding, score: str) -> dict[Party, tuple[float, ...]]:
    """Return a score of each held record, by the client that holds it; {} if it has none."""
    width = len(finding.targets) + 1
    sources = _true_columns(finding)
    chances = held_chances(np.reshape(finding.claimed.numbers, (-1, width)))
    values = dict[Party, tuple[float, ...]]()
    for column, party in enumerate(finding.targets):
        own = sources == column
        if own.any():
            values[party] = tuple(
                RECORD_SCORES[score].of_records(chances[own], sources[own]).tolist()
            )
    return values
