"""The words of a client, from word vectors, the last layer and public text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch

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
from overheard.questions.words.estimators.two_groups import log_odds_of_use


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
    other part is not sent. `estimators.two_groups` fits to each target how evidence and public
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
