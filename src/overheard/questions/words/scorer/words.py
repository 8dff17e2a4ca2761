"""The scorer of claims about the words that a target used."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.claims import Claim
from overheard.core.errors import ClaimError, NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.parties import Party
from overheard.core.scorer import Guesses, Score, Scorer
from overheard.core.truth import GroundTruth
from overheard.questions.words.claim import MOST_LISTED, Words
from overheard.questions.words.estimators.public_words import count_public_words, count_words
from overheard.statistics.average_precision import shared_average_precisions


@final
@dataclass(frozen=True, slots=True)
class WordsScorer(Scorer[Words]):
    """How well a claim ranks the words that the target used above all other words.

    A word is used if it occurs in an example that the target held in the observed rounds: in
    its text or, in next-word prediction, as its label.

    - `rare_word_precision`: the average precision over words that are rare in public text (all
      but the most frequent tenth of the vocabulary). Everybody uses frequent words, so only
      rare ones say something of a client.
    - `rare_words_named`: the share of used words among the first 100 rare words, or among as
      many as the target used, if fewer.
    - `word_precision`: the average precision over all words.

    Two uninformed guesses rank words: `public text` by how many examples have the word in the
    text that the attacker knows, and `any order` at random.
    """

    name: ClassVar[str] = "words"
    claim_type: ClassVar[type[Claim]] = Words
    headline: ClassVar[str] = "rare_word_precision"
    source: ClassVar[str] = (
        "Melis et al. 2019 (Exploiting Unintended Feature Leakage in Collaborative Learning, "
        "S&P), section 4.1: the words of a batch; average precision: as for re-identification"
    )

    def true_claim(
        self, truth: GroundTruth, target: Party, rounds: Collection[int], claim: Words
    ) -> Words:
        """Return 1 for words that the target used, and 0 for all others.

        Raises:
            NeedsError: if the ground truth does not have the target's texts.

        """
        used = words_used(truth, target, rounds)
        if len(used) != len(claim.scores):
            raise ClaimError(
                f"the claim is about {len(claim.scores)} words, but the vocabulary has "
                f"{len(used)}"
            )
        return replace(claim, scores=used, listed=claim.listed_places())

    def uninformed_guesses(self, claim: Words, knowledge: Knowledge) -> Mapping[str, Words]:
        """Guess that the target uses the words of public text, and nothing."""
        unknown = replace(claim, scores=torch.zeros(len(claim.scores)), listed=())
        counts = count_public_words(knowledge)
        if counts is None or len(counts) != len(claim.scores):
            return {"any order": unknown}
        return {"public text": replace(unknown, scores=counts), "any order": unknown}

    def informed_guesses(self, truth: Words) -> Mapping[str, Words]:
        """Return no guess: no part of the truth can be known separately."""
        return {}

    def score(self, claim: Words, truth: Words, guesses: Guesses[Words]) -> tuple[Score, ...]:
        """Return all scores; those of rare words only if the target used one."""
        is_rare = claim.rare_places()
        every = torch.ones_like(is_rare)
        scores = []
        for name, measure, places in (
            ("rare_word_precision", _precision, is_rare),
            ("rare_words_named", _share_named, is_rare),
            ("word_precision", _precision, every),
        ):
            if bool(truth.scores[places].any()):
                used = truth.scores[places]
                scores.append(_score(name, measure, claim, used, guesses, places))
        return tuple(scores)


def words_used(
    truth: GroundTruth, target: Party, rounds: Collection[int]
) -> Float[Tensor, " words"]:
    """Return 1 for each word that the target used in these rounds, and 0 for all others.

    Raises:
        NeedsError: if the ground truth does not have the target's texts.

    """
    examples = truth.examples_of(target, rounds)
    assert truth.partition is not None, "it would have no examples"
    words = truth.partition.token_words
    if words is None:
        raise NeedsError("the examples of the run are no texts: ask another question")
    return (count_words(examples, words) > 0).float()


def rare_word_precisions(
    claim: Words, used: Float[Tensor, "truths words"]
) -> Float[Tensor, " truths"]:
    """Return the average precision of a claim over rare words, for each truth."""
    is_rare = claim.rare_places()
    precisions = shared_average_precisions(
        claim.scores[is_rare].numpy(), (used[:, is_rare] > 0).numpy()
    )
    return torch.from_numpy(precisions)


WordMeasure = Callable[[Float[Tensor, " words"], Float[Tensor, " words"]], float]


def _score(
    name: str,
    measure: WordMeasure,
    claim: Words,
    used: Float[Tensor, " words"],
    guesses: Guesses[Words],
    places: Tensor,
) -> Score:
    return Score(
        name,
        measure(claim.scores[places], used),
        "higher",
        {guess: measure(one.scores[places], used) for guess, one in guesses.uninformed.items()},
        {},
    )


def _precision(scores: Float[Tensor, " words"], used: Float[Tensor, " words"]) -> float:
    return float(shared_average_precisions(scores.numpy(), (used > 0).numpy()[None])[0])


def _share_named(scores: Float[Tensor, " words"], used: Float[Tensor, " words"]) -> float:
    return share_among_first(scores.numpy(), (used > 0).numpy(), MOST_LISTED)


def share_among_first(
    scores: Float[np.ndarray, " words"], used: Bool[np.ndarray, " words"], length: int
) -> float:
    """Return the share of used words among the first ones of a ranking.

    Words that tie at the end of the list share its remaining places.

    Args:
        scores: larger = ranked higher.
        used: whether each word was used, once or more.
        length: words in the list; no more than were used.

    """
    length = min(length, int(used.sum()))
    threshold = np.sort(scores)[-length]
    above, tied = scores > threshold, scores == threshold
    part = (length - above.sum()) / tied.sum()
    return float((used[above].sum() + part * used[tied].sum()) / length)
