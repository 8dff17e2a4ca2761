"""The mean output of a model for each true class."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


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
