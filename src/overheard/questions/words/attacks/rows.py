"""The words of a client, from word vectors, the last layer and public text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.optimize import brentq

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.needs import CROSS_ENTROPY, MODEL, TEXTS, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.words.claim import Words
from overheard.questions.words.estimators.evidence import (
    available_evidence,
    embedding_evidence,
    output_evidence,
    pool_evidence,
)
from overheard.questions.words.estimators.public_words import claim_words, count_public_words


@final
@dataclass(frozen=True, slots=True)
class EmbeddingRows(Attack[Words]):
    """Ranks words by how far their word vectors move.

    The gradient of a word vector is 0 unless the word is in the batch. So SGD, momentum and
    Adam leave the rows of unused words as they are, to the last bit, and the claim is exact for
    all words of a text. A word that is only the label of a next-word example is missed.
    Weight decay moves all rows; what it moves is estimated and subtracted
    (`estimators.evidence`). Noise moves all rows too, and hides words that move less. A
    table that is also the last layer moves in all rows, since absent labels push theirs; what
    moves along the median row is then left out.

    If the model is unknown, the table is the tensor with a row for each token.

    The lengths of a round are compared with those of most words (`estimators.robust_scores`),
    and summed over rounds.

    Differs from the paper, which reads the gradient of one batch and does not rank words.
    """

    name: ClassVar[str] = "embedding_rows"
    claim_type: ClassVar = Words
    needs: ClassVar = frozenset({UPDATES, TEXTS})
    source: ClassVar[str] = (
        "Melis et al. 2019 (Exploiting Unintended Feature Leakage in Collaborative Learning, "
        "S&P), section 4.1; weight decay and several rounds: Overheard"
    )

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Words]:
        """Claim the words of every target.

        Raises:
            NeedsError: if the model has no word vectors, or they are never sent.

        """
        words = knowledge.facts.need(TokenWords)
        evidence = embedding_evidence(view, targets, knowledge)
        return {
            target: claim_words(pool_evidence(evidence, view, target, words), knowledge)
            for target in targets
        }


@final
@dataclass(frozen=True, slots=True)
class OutputRows(Attack[Words]):
    """Ranks words by how far their outputs are raised, in next-word prediction.

    A word that is the label of an example pulls its bias and its row of the last layer up; a
    word that never is has both pushed down (`estimators.evidence`). The update thus says which
    words were labels, also if word vectors are frozen and only adapters and the last layer are
    sent. Words that occur in the text and are no label are missed. Where every word of a text
    is a label once, there is none.

    Differs from the papers, which read one label or the label counts of a batch from the signs
    and sums of rows. Under noise a whole row says more than its sum or the bias, so it is
    projected.
    """

    name: ClassVar[str] = "output_rows"
    claim_type: ClassVar = Words
    needs: ClassVar = frozenset({UPDATES, MODEL, TEXTS, CROSS_ENTROPY})
    source: ClassVar[str] = (
        "Zhao, Mopuri and Bilen 2020 (iDLG, arXiv 2001.02610), section 3, and Wainakh et al. "
        "2022 (PETS): labels from the signs of the last layer; labels as words and the "
        "projection of rows: Overheard"
    )

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Words]:
        """Claim the words of every target.

        Raises:
            NeedsError: if labels are no words, or the last layer is not sent.

        """
        words = knowledge.facts.need(TokenWords)
        evidence = output_evidence(knowledge)
        return {
            target: claim_words(pool_evidence(evidence, view, target, words), knowledge)
            for target in targets
        }


@final
@dataclass(frozen=True, slots=True)
class CombinedRows(Attack[Words]):
    """Ranks words by the probability that they were used, given all that is sent and public.

    The evidence is that of `embedding_rows` and of `output_rows`, or of one of them if the
    other part is not sent. `log_odds_of_use` fits to each target how evidence and public
    frequency combine. So words that occur in the text alone, or as labels alone, are both
    found. Under noise, the claim falls back on public text word by word, and no virtual clients
    are needed to know how far to trust the evidence. Without public text, the robust scores of
    both are added.
    """

    name: ClassVar[str] = "combined_rows"
    claim_type: ClassVar = Words
    needs: ClassVar = frozenset({UPDATES, TEXTS})
    source: ClassVar[str] = (
        "Overheard; the groups of used and unused words: Efron 2008 (Statistical Science 23), "
        "section 2"
    )

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Words]:
        """Claim the words of every target.

        Raises:
            NeedsError: if neither word vectors nor the last layer say anything of words.

        """
        sources = available_evidence(view, targets, knowledge)
        words = knowledge.facts.need(TokenWords)
        counts = count_public_words(knowledge)
        claims = {}
        for target in targets:
            evidence = [pool_evidence(one, view, target, words) for one in sources]
            scores = (
                torch.stack(evidence).sum(0)
                if counts is None
                else torch.from_numpy(
                    log_odds_of_use([one.numpy() for one in evidence], counts.double().numpy())
                )
            )
            claims[target] = claim_words(scores, knowledge)
        return claims


BINS = 100
"""Groups of words with about the same rank of evidence; a density is constant within one."""

STEPS = 30
"""Steps of expectation and maximisation; claims hardly change after ten."""

FEWEST_USED, MOST_USED = 0.002, 0.8
"""Shares of the vocabulary between which that of used words is taken to be."""

FIRST_SHARE = 0.05
"""The share of used words at the start."""


def log_odds_of_use(
    evidence: Sequence[Float[np.ndarray, " words"]],
    public: Float[np.ndarray, " words"],
) -> Float[np.ndarray, " words"]:
    """Return the log-odds that each word was used, after fitting to all words of a target.

    Words are of two groups, used and unused (Efron 2008, Microarrays, Empirical Bayes and the
    Two-Groups Model, Statistical Science 23, section 2). A word of public frequency f is used
    with probability 1 - exp(-c f), since it is drawn many times. Given the group, sources of
    evidence are taken to be independent, and the ratio of their densities rises with the
    evidence. The scale c and the ratios are fitted by expectation and maximisation: if the
    evidence says nothing, the ratios are near 1, and the order is about that of public text.

    It is public text that tells the two groups from each other. So it must use words as clients
    do, at least the frequent ones: evidence that goes against it is taken for chance.

    Args:
        evidence: for each source, larger = more probably used.
        public: how many public examples have each word.

    """
    frequency = public + 0.5
    bins = [_bin_by_rank(one) for one in evidence]
    # At the start, evidence counts as much as its rank.
    log_ratios = [np.log((one + 0.5) / BINS) - np.log(0.5) for one in bins]
    share = FIRST_SHARE
    log_odds = np.zeros(len(public))
    for _ in range(STEPS):
        prior = _probability_of_use(frequency, share)
        log_odds = np.log(prior / (1 - prior)) + np.sum(log_ratios, axis=0)
        used = 1 / (1 + np.exp(-log_odds.clip(-500, 500)))
        share = float(np.clip(used.mean(), FEWEST_USED, MOST_USED))
        log_ratios = [_fit_log_ratios(one, used) for one in bins]
    return log_odds


def _bin_by_rank(evidence: Float[np.ndarray, " words"]) -> Int[np.ndarray, " words"]:
    """Return the bin of each word, 0 = the least evidence; ties share one."""
    from scipy.stats import rankdata  # only here: importing it takes half a second

    ranks = (rankdata(evidence) - 0.5) / len(evidence)
    bins: Int[np.ndarray, " words"] = np.minimum((ranks * BINS).astype(np.int64), BINS - 1)
    return bins


def _probability_of_use(
    frequency: Float[np.ndarray, " words"], share: float
) -> Float[np.ndarray, " words"]:
    """Return 1 - exp(-c f) of each word, with the scale c that makes the mean `share`."""

    def excess(log_scale: float) -> float:
        return float(-np.expm1(-np.exp(log_scale) * frequency).mean()) - share

    scale = np.exp(brentq(excess, -60.0, 60.0))
    # No word is certain before there is evidence.
    probabilities: Float[np.ndarray, " words"] = (-np.expm1(-scale * frequency)).clip(
        1e-9, 1 - 1e-6
    )
    return probabilities


def _fit_log_ratios(
    bins: Int[np.ndarray, " words"], used: Float[np.ndarray, " words"]
) -> Float[np.ndarray, " words"]:
    """Return the log-ratio of the densities of used and unused words, rising with the bin.

    Each group has one extra word, spread over the bins (Laplace).
    """
    from sklearn.isotonic import isotonic_regression

    sizes = np.bincount(bins, minlength=BINS).astype(np.float64)
    of_used = np.bincount(bins, used, BINS) + sizes / len(bins)
    of_unused = np.bincount(bins, 1 - used, BINS) + sizes / len(bins)
    seen = sizes > 0
    ratio = of_used[seen] / (of_used[seen] + of_unused[seen])
    rising = isotonic_regression(ratio, sample_weight=sizes[seen])
    log_ratios = np.zeros(BINS)
    log_ratios[seen] = np.log(rising / (1 - rising)) - np.log(of_used.sum() / of_unused.sum())
    found: Float[np.ndarray, " words"] = log_ratios[bins]
    return found
