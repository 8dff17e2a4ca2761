"""The mean output of a model for each true class."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.knowledge import Knowledge
from overheard.core.messages import Weights
from overheard.learning.evaluate import logits_of_models, logits_of_updates


def confusion_of_model(
    weights: Weights, knowledge: Knowledge
) -> Float[Tensor, "classes classes"]:
    """Return `mean_output_by_class` of a model on the attacker's auxiliary examples."""
    assert knowledge.auxiliary is not None
    assert knowledge.build_model is not None
    auxiliary = knowledge.auxiliary
    (logits,) = logits_of_models(knowledge.build_model, [weights], auxiliary.inputs)
    return mean_output_by_class(logits, auxiliary.labels)


def confusion_of_updates(
    start: Weights, deltas: Sequence[Weights], knowledge: Knowledge
) -> Iterator[Float[Tensor, "classes classes"]]:
    """Yield `mean_output_by_class` of the model after each update to a broadcast, in order.

    Attacks on one run share the results, as far as `OutputCache` has room for them.
    """
    assert knowledge.auxiliary is not None
    assert knowledge.build_model is not None
    auxiliary, cache = knowledge.auxiliary, knowledge.compute.outputs
    basis = (knowledge.build_model, auxiliary)
    known = [cache.load(basis, start, delta) for delta in deltas]
    missing = (delta for delta, found in zip(deltas, known, strict=True) if found is None)
    computed = logits_of_updates(knowledge.build_model, start, missing, auxiliary.inputs)
    for delta, found in zip(deltas, known, strict=True):
        if found is not None:
            yield torch.from_numpy(found.copy())
            continue
        matrix = mean_output_by_class(next(computed), auxiliary.labels)
        cache.save(basis, start, delta, matrix.numpy())
        yield matrix.clone()


def mean_output_by_class(
    logits: Float[Tensor, "examples classes"], labels: Int[Tensor, " examples"]
) -> Float[Tensor, "classes classes"]:
    """Average the softmax output by true class: entry (k, c) = mean p_c over class k.

    Each row sums to 1. The result is float64, because callers solve linear systems with it.

    Raises:
        ValueError: if a class has no example, which leaves its row undefined.

    """
    classes = logits.shape[1]
    counts = labels.bincount(minlength=classes)
    if bool((counts == 0).any()):
        raise ValueError(f"every class needs an example, got {counts.tolist()} by class")
    probabilities = logits.double().softmax(1)
    sums = torch.zeros(classes, classes, dtype=torch.float64, device=logits.device)
    sums.index_add_(0, labels, probabilities)
    return sums / counts[:, None]  # (classes, classes)
