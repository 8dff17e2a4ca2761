"""The words of a client, from word vectors, the last layer and public text together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import torch

from overheard.core.attack import Attack
from overheard.core.knowledge import Knowledge
from overheard.core.needs import TEXTS, UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.words.claim import Words
from overheard.questions.words.estimators.evidence import available_evidence, pool_evidence
from overheard.questions.words.estimators.public_words import claim_words, count_public_words
from overheard.questions.words.estimators.two_groups import log_odds_of_use


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
        assert knowledge.token_words is not None
        sources, words = available_evidence(view, targets, knowledge), knowledge.token_words
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
