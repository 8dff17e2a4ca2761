"""How often public text uses each word, which is what an attacker knows without a run."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.token_words import TokenWords
from overheard.questions.words.claim import Words

FREQUENT_SHARE = 0.1
"""The share of the vocabulary that counts as frequent; all other words are rare."""


def count_words(examples: Examples, words: TokenWords) -> Float[Tensor, " words"]:
    """Return how many examples have each word, among their inputs or as their label.

    Tokens outside the vocabulary, and those that are no words, are left out.
    """
    tokens = examples.inputs.flatten(1)
    if words.first_label is not None:
        tokens = torch.cat((tokens, examples.labels[:, None] + words.first_label), 1)
    ordered = tokens.sort(1).values
    is_first = torch.ones_like(ordered, dtype=torch.bool)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    is_word = (ordered >= words.first) & (ordered < words.tokens)
    counted = ordered[is_first & is_word] - words.first
    return counted.bincount(minlength=len(words)).float()


def count_public_words(knowledge: Knowledge) -> Float[Tensor, " words"] | None:
    """Return how many public examples have each word; None if the attacker knows no text.

    Public are the auxiliary examples and those of the background.
    """
    words = knowledge.facts.get(TokenWords)
    known = [
        count_words(examples, words)
        for examples in (knowledge.auxiliary, knowledge.background)
        if words is not None
        and examples is not None
        and not examples.inputs.is_floating_point()
        and len(examples)
    ]
    return torch.stack(known).sum(0) if known else None


def find_rare_words(counts: Float[Tensor, " words"]) -> Bool[Tensor, " words"]:
    """Return whether each word is rare: used no more than the first beyond the frequent ones.

    >>> find_rare_words(torch.tensor([9.0, 0, 1, 2, 0, 0, 0, 0, 0, 0])).tolist()[:4]
    [False, True, True, True]
    """
    frequent = math.ceil(FREQUENT_SHARE * len(counts))
    beyond = counts.sort(descending=True).values[min(frequent, len(counts) - 1)]
    return counts <= beyond


def claim_words(scores: Float[Tensor, " words"], knowledge: Knowledge) -> Words:
    """Return the claim with these scores, and with the words that are rare in public text."""
    counts = count_public_words(knowledge)
    return Words(
        scores.float(),
        knowledge.facts.need(TokenWords).names(),
        None if counts is None else find_rare_words(counts),
    )
