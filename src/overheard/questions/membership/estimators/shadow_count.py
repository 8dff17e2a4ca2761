"""How many shadow models are trained, and on how many examples each."""

from math import ceil

import torch

from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import candidate_records
from overheard.core.view import View

DEFAULT_IN_MODELS = 16
"""In-models that a candidate record has on average, if the number of models is not set.

With five clients of 60 examples and 1,500 examples to draw from, 32 models are 1.3 in-models a
record; 400 are 16."""

MAX_SHADOW_MODELS = 1024
"""The largest number that is set from the expected in-models, whatever their number is then."""

OFFLINE_MODELS = 32
"""The number of models that train on no candidate record, if it is not set."""


def shadow_size(view: View, knowledge: Knowledge, *, include_candidates: bool) -> int:
    """Return on how many examples each shadow model trains.

    That is as many as clients report (the median), or half of the available examples if no size
    is reported or fewer are available.

    Raises:
        NeedsError: if there are fewer than two examples to draw from.

    """
    available = _available_examples(knowledge, include_candidates=include_candidates)
    if available < 2:
        raise NeedsError(
            "shadow models need two or more examples: give the attacker more auxiliary examples"
        )
    return min(_reported_size(view) or available, available // 2)


def shadow_model_count(
    view: View,
    knowledge: Knowledge,
    models: int | None,
    in_models: int,
    *,
    include_candidates: bool,
) -> int:
    """Return the number of shadow models a round.

    A model trains on a given record with probability size / available examples. The number is
    such that a record has `in_models` in-models on average, at most `MAX_SHADOW_MODELS`.

    Args:
        view: provides the reported sizes.
        knowledge: with auxiliary examples and candidate records.
        models: the number that is set; None = from the expected in-models.
        in_models: expected number of models that train on a given record.
        include_candidates: whether models train on candidate records.

    Raises:
        NeedsError: if there are fewer than two examples to draw from.

    """
    if models is not None:
        return models
    if not include_candidates:
        return OFFLINE_MODELS
    available = _available_examples(knowledge, include_candidates=True)
    size = shadow_size(view, knowledge, include_candidates=True)
    return min(ceil(in_models * available / size), MAX_SHADOW_MODELS)


def _available_examples(knowledge: Knowledge, *, include_candidates: bool) -> int:
    assert knowledge.auxiliary is not None
    records = len(candidate_records(knowledge)) if include_candidates else 0
    return len(knowledge.auxiliary) + records


def _reported_size(view: View) -> int | None:
    sizes = [
        update.examples
        for sender in view.senders()
        for update in view.updates(sender).values()
        if update.examples
    ]
    return int(torch.tensor(sizes).median()) if sizes else None
