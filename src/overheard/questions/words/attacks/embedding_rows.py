"""The words of a client, from the rows of the word vectors that its update changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.needs import TEXTS, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.words.claim import Words
from overheard.questions.words.estimators.evidence import embedding_evidence, pool_evidence
from overheard.questions.words.estimators.public_words import claim_words


@final
@dataclass(frozen=True, slots=True)
class EmbeddingRows(Attack[Words]):
    """Ranks words by how far their word vectors move.

    The gradient of a word vector is 0 unless the word is in the batch. So SGD, momentum and
    Adam leave the rows of unused words as they are, to the last bit, and the claim is exact for
    all words of a text. A word that is only the label of a next-word example is missed.
    Weight decay moves all rows; what it moves is estimated and subtracted
    (`estimators.word_vectors`). Noise moves all rows too, and hides words that move less. A
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
        assert knowledge.token_words is not None
        words = knowledge.token_words
        evidence = embedding_evidence(view, targets, knowledge)
        return {
            target: claim_words(pool_evidence(evidence, view, target, words), knowledge)
            for target in targets
        }
