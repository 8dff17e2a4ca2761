"""The question: which words a client used."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import factorial
from types import MappingProxyType
from typing import final

import torch

from overheard.core.known_facts.token_words import TokenWords
from overheard.core.parties import COHORT, Party, party_sort_key
from overheard.core.seeds import Seed
from overheard.core.truth import GroundTruth
from overheard.findings.finding import ArmRun, Finding
from overheard.findings.planned_sizes import PlannedSizes
from overheard.findings.question import Question
from overheard.findings.re_paired_fits import RePairedFits
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
from overheard.questions.words.statistics.re_paired_words import re_pair_words

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
