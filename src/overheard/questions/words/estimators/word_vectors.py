"""The tables of word vectors of a model, and how their rows change in an update."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from overheard.core.errors import NeedsError
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.messages import Update, Weights
from overheard.learning.sent_tensors import trainable_parameters

BINS = 64
"""Ranges of weights; the change of unused rows is estimated within each."""

MOST_SORTED = 200_000
"""About how many weights are sorted to estimate the change of unused rows."""


def find_word_tables(model: nn.Module, words: TokenWords) -> tuple[str, ...]:
    """Return the names of the tables with a row for each token, as they are sent.

    Tables with a row for each position or for each part of a text are left out.

    Raises:
        NeedsError: if the model has no such table, or all of them are frozen.

    """
    tables = {
        f"{name}.weight" if name else "weight": module.weight
        for name, module in model.named_modules()
        if isinstance(module, (nn.Embedding, nn.EmbeddingBag))
        and module.num_embeddings >= words.tokens
    }
    if not tables:
        raise NeedsError(
            f"the attack reads word vectors, but {type(model).__name__} has no nn.Embedding "
            f"with a row for each of {words.tokens} tokens"
        )
    # A table that is also the last layer is sent under one name alone.
    sent = {id(one): name for name, one in trainable_parameters(model).items()}
    names = tuple(sent[id(one)] for one in tables.values() if id(one) in sent)
    if not names:
        raise NeedsError(
            f"the attack reads word vectors, but {', '.join(tables)} of "
            f"{type(model).__name__} is frozen and never sent: choose attacks that read the "
            "last layer, or all that is sent"
        )
    return names


def find_tables_by_shape(sent: Weights, words: TokenWords, classes: int) -> tuple[str, ...]:
    """Return the names of tensors with a row for each token, for an unknown model.

    If labels are as many as tokens, the last layer has that shape too; the first tensor is then
    taken for the table.

    Raises:
        NeedsError: if there is no such tensor.

    """
    names = tuple(
        name for name, one in sent.items() if one.ndim == 2 and len(one) == words.tokens
    )
    if not names:
        raise NeedsError(
            "the attack reads word vectors, but no tensor that is sent has a row for each of "
            f"{words.tokens} tokens: choose attacks that read all that is sent"
        )
    return names[:1] if classes == words.tokens else names


def find_shared_table(model: nn.Module) -> str | None:
    """Return the name of the table that is also the last linear layer; None if none is."""
    linear = [one for one in model.modules() if isinstance(one, nn.Linear)]
    tables = [one for one in model.modules() if isinstance(one, nn.Embedding)]
    if not linear or not any(one.weight is linear[-1].weight for one in tables):
        return None
    sent = {id(one): name for name, one in trainable_parameters(model).items()}
    return sent.get(id(linear[-1].weight))


def without_push(rows: Float[Tensor, "words dims"]) -> Float[Tensor, "words dims"]:
    """Return rows without their part along the median row, where absent labels push them."""
    push = rows.median(0).values
    length = push.norm()
    if not bool(length > 0):
        return rows
    return rows - torch.outer(rows @ push / length, push / length)


def row_changes(
    update: Update, start: Weights | None, table: str, words: TokenWords
) -> Float[Tensor, "words dims"]:
    """Return the change of each word's row, less what the rows of unused words change.

    Without weight decay unused rows do not change. With it, or with adaptive steps, the change
    of a weight is a function of its start. That function is estimated by medians over all
    words, most of which a client does not use. Without a broadcast, changes stay as they are.
    """
    rows = slice(words.first, words.tokens)
    change = update.delta[table][rows].double()
    has_unused = bool((change == 0).all(1).any())
    if start is None or has_unused:
        return change
    return change - _change_of_unused(start[table][rows].double(), change)


def _change_of_unused(
    start: Float[Tensor, "words dims"], change: Float[Tensor, "words dims"]
) -> Float[Tensor, "words dims"]:
    """Return the median change of weights with about the same start."""
    # Evenly spaced weights are enough for medians; to sort a million takes most of the time.
    spacing = 1 + start.numel() // MOST_SORTED
    values, order = start.flatten()[::spacing].sort()
    changes = change.flatten()[::spacing][order]
    bins = [part for part in torch.tensor_split(torch.arange(len(values)), BINS) if len(part)]
    centres = torch.stack([values[part].median() for part in bins])
    medians = torch.stack([changes[part].median() for part in bins])
    above = torch.searchsorted(centres, start.contiguous()).clamp(1, max(1, len(centres) - 1))
    if len(centres) < 2:
        return medians.expand_as(start)
    low, high = centres[above - 1], centres[above]
    part = torch.where(high > low, (start - low) / (high - low), 0.0)
    return medians[above - 1] + part * (medians[above] - medians[above - 1])
