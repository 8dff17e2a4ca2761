"""What a model says, on average, about examples of each class."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def confusion(
    logits: Float[Tensor, "examples classes"], labels: Int[Tensor, " examples"]
) -> Float[Tensor, "classes classes"]:
    """Mean softmax output by true class: entry (k, c) = mean of p_c over examples of class k.

    Each row sums to 1. In float64, as its users solve linear systems with it.

    Raises:
        ValueError: if a class has no example, as its row would be undefined.

    """
    classes = logits.shape[1]
    counts = labels.bincount(minlength=classes)
    if bool((counts == 0).any()):
        raise ValueError(f"every class needs an example, got {counts.tolist()} by class")
    probabilities = logits.double().softmax(1)
    sums = torch.zeros(classes, classes, dtype=torch.float64, device=logits.device)
    sums.index_add_(0, labels, probabilities)
    return sums / counts[:, None]  # (classes, classes)
