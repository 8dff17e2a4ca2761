"""The question: which words a client used."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import factorial
from types import MappingProxyType
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int

from overheard.core.known_facts.token_words import TokenWords
from overheard.core.parties import COHORT, Party, party_sort_key
from overheard.core.seeds import Seed
from overheard.core.truth import GroundTruth
from overheard.findings.controlled_findings import planned_by_attack
from overheard.findings.finding import ArmRun, Finding
from overheard.findings.planned_sizes import PlannedSizes
from overheard.findings.question import Question
from overheard.questions.words.claim import Words
from overheard.questions.words.measures import MEASURES
from overheard.questions.words.scorer.words import (
    WordsScorer,
    rare_word_precisions,
    words_used,
)
from overheard.questions.words.statistics.other_clients import (
    OTHER_CLIENTS,
    mean_against_others,
)
from overheard.statistics.permutation_test import (
    RePairedFits,
    group_by_runs,
    no_test,
    number_values,
    re_pair_units,
    sum_by_user,
)

MOST_COMPARED = 200
"""Clients whose words a claim is compared with; of more, all pairs would take long."""


@final
@dataclass(frozen=True, slots=True)
class WordsQuestion(Question[Words]):
    """Which words a client used.

    There is no control run: with permuted examples an update would leak the words that were
    permuted. The control is within the run, where claims are compared with other clients'
    words.
    """

    name = "words"
    source = WordsScorer.source
    measures = MEASURES
    gives = (TokenWords,)
    margins = MappingProxyType({"rare_word_precision": 0.05})

    @property
    def scorer(self) -> WordsScorer:
        """The scorer of this question."""
        return WordsScorer()

    def redrawn_fits(
        self, claim: Words, truth: GroundTruth, target: Party, rounds: Collection[int]
    ) -> tuple[float, ...]:
        """Return how well a claim fits the target's words, and then those of every client.

        The fit is the average precision over rare words, 0 where a client used none. Clients
        are in the order of `party_sort_key`. There are no others to compare a claim about all
        clients with.
        """
        if target == COHORT or truth.partition is None:
            return ()
        parties = {party for number, party in truth.partition.rows if number in rounds}
        if len(parties) > MOST_COMPARED:
            return ()
        ordered = sorted(parties, key=party_sort_key)
        used = torch.stack([words_used(truth, one, rounds) for one in ordered])
        fits = rare_word_precisions(claim, used).nan_to_num(0.0).tolist()
        return (fits[ordered.index(target)], *fits)

    def references(
        self, score: str, planned: Sequence[Finding], control: Sequence[Finding]
    ) -> Mapping[str, float]:
        """Return the mean of the headline score if claims are held against other clients."""
        mean = mean_against_others(planned) if score == WordsScorer.headline else None
        return {} if mean is None else {OTHER_CLIENTS: mean}

    def re_paired_fits(
        self, findings: Sequence[Finding], runs: Sequence[ArmRun], seed: Seed
    ) -> RePairedFits:
        """Compare claims with the words of permuted clients."""
        return re_pair_words(findings, seed)

    def count_planned_pairings(self, sizes: PlannedSizes) -> int:
        """Return the number of permutations of clients; 1 for claims about all together."""
        return 1 if sizes.about == "cohort" else factorial(sizes.targets)


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
        fits.append(sum_by_user(by_unit, units, numbers, count))
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
