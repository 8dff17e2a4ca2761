"""The words of a client, from the rows of the last layer that its update raises."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.needs import CROSS_ENTROPY, MODEL, TEXTS, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.words.claim import Words
from overheard.questions.words.estimators.evidence import output_evidence, pool_evidence
from overheard.questions.words.estimators.public_words import claim_words


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
        assert knowledge.token_words is not None
        words = knowledge.token_words
        evidence = output_evidence(knowledge)
        return {
            target: claim_words(pool_evidence(evidence, view, target, words), knowledge)
            for target in targets
        }
