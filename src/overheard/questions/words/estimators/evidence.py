"""The evidence of each word in the updates of a target, by the part of the model it is in."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.token_words import TokenWords
from overheard.core.messages import Update, Weights
from overheard.core.needs import MODEL
from overheard.core.parties import Party
from overheard.core.view import View
from overheard.learning.last_layer import LastLayer, find_last_layer
from overheard.learning.sent_tensors import trainable_parameters

SMALLEST_SPREAD = 1e-6
"""Least spread, as a share of the largest deviation: most unused words may be exactly alike."""


Evidence = Callable[[Update, Weights | None], Float[Tensor, " words"]]
"""Returns the evidence of each word in one update, given the broadcast if it is known."""


def embedding_evidence(view: View, targets: Sequence[Party], knowledge: Knowledge) -> Evidence:
    """Return how far an update moves the vector of each word.

    If the model is unknown, the table is found by its shape.

    Raises:
        NeedsError: if the model has no word vectors, or they are never sent.

    """
    words, shared = knowledge.facts.need(TokenWords), None
    if knowledge.build_model is None:
        updates = next(iter(view.updates(targets[0]).values()))
        tables = find_tables_by_shape(updates.delta, words, knowledge.classes)
    else:
        model = knowledge.build_model()
        tables, shared = find_word_tables(model, words), find_shared_table(model)

    def read(update: Update, start: Weights | None) -> Float[Tensor, " words"]:
        squares = []
        for table in tables:
            changes = row_changes(update, start, table, words)
            if table == shared:
                changes = without_push(changes)
            squares.append(changes.square().sum(1))
        return torch.stack(squares).sum(0).sqrt()

    return read


def output_evidence(knowledge: Knowledge) -> Evidence:
    """Return how far an update raises the outputs of each word.

    A label pulls its row of the last layer and its bias up, and all other labels push them
    down. Used are the change of the bias and the product of the row with the median row, which
    points to where absent labels are pushed. Both are robust scores. Words that are no label
    get the lowest evidence.

    Raises:
        NeedsError: if labels are no words, or the last layer is not sent or not known.

    """
    words, classes = knowledge.facts.need(TokenWords), knowledge.classes
    if knowledge.build_model is None:
        raise NeedsError(f"the outputs of words need {MODEL.description}")
    if words.first_label is None:
        raise NeedsError(
            "the attack reads the outputs of words, but the labels of this task are no words: "
            "choose attacks that read word vectors"
        )
    model = knowledge.build_model()
    shared = find_shared_table(model)
    layer = find_last_layer(model, classes) if shared is None else LastLayer(shared, None)
    first = words.first_label - words.first

    def read(update: Update, start: Weights | None) -> Float[Tensor, " words"]:
        of_labels = _label_evidence(update, layer, classes)
        lowest = of_labels.min()
        labels = torch.arange(classes) + first
        is_word = (labels >= 0) & (labels < len(words))
        evidence = lowest.expand(len(words)).clone()
        evidence[labels[is_word]] = of_labels[is_word]
        return evidence

    return read


def pool_evidence(
    evidence: Evidence, view: View, target: Party, words: TokenWords
) -> Float[Tensor, " words"]:
    """Return the sum over rounds of the robust scores of a target's updates."""
    total = torch.zeros(len(words), dtype=torch.float64)
    broadcasts = view.broadcasts()
    for number, update in sorted(view.updates(target).items()):
        total = total + robust_scores(evidence(update, broadcasts.get(number)))
    return total


def available_evidence(
    view: View, targets: Sequence[Party], knowledge: Knowledge
) -> tuple[Evidence, ...]:
    """Return the sources of evidence that are sent: word vectors, the last layer, or both.

    Raises:
        NeedsError: if neither is, with both reasons.

    """
    found, reasons = list[Evidence](), list[str]()
    try:
        found.append(embedding_evidence(view, targets, knowledge))
    except NeedsError as reason:
        reasons.append(str(reason))
    try:
        found.append(output_evidence(knowledge))
    except NeedsError as reason:
        reasons.append(str(reason))
    if not found:
        raise NeedsError("; ".join(reasons))
    return tuple(found)


def _label_evidence(
    update: Update, layer: LastLayer, classes: int
) -> Float[Tensor, " classes"]:
    rows = update.delta[layer.weight][:classes].double()
    push = rows.median(0).values
    evidence = robust_scores(-(rows @ push) / push.norm().clamp(min=1e-30))
    if layer.bias is not None:
        evidence = evidence + robust_scores(update.delta[layer.bias].double())
    return evidence


def robust_scores(evidence: Float[Tensor, " words"]) -> Float[Tensor, " words"]:
    """Return how many median absolute deviations each word is above the median.

    A client does not use most words, so median and deviation are those of unused words. A
    source of evidence that distinguishes used words clearly has large scores for them, and one
    that noise hides has small ones. So the scores of several sources and rounds can be added.
    All are 0 if the evidence is the same for all words.
    """
    deviations = evidence - evidence.median()
    largest = float(deviations.abs().max())
    if largest == 0:
        return torch.zeros_like(evidence)
    spread = max(float(deviations.abs().median()), SMALLEST_SPREAD * largest)
    return deviations / spread


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
