"""The similarity of synthetic examples to the mean image of their class."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from overheard.core.examples import Examples


def measure_class_similarity(
    inputs: Float[Tensor, "examples ..."], held: Examples, classes: int
) -> Float[Tensor, "examples classes"]:
    """Return the cosine of each example and each class's mean, relative to the overall mean.

    The values are in -1..1, and 0 for an example equal to the overall mean. All classes have
    the same weight in the overall mean.

    Args:
        inputs: examples that are compared.
        held: images of the class means; one or more of each class.
        classes: number of classes.

    """
    flat = held.inputs.flatten(1).double()
    means = torch.stack([flat[held.labels == label].mean(0) for label in range(classes)])
    overall_mean = means.mean(0)
    directions = normalize(inputs.flatten(1).double() - overall_mean, dim=1)
    return directions @ normalize(means - overall_mean, dim=1).T


def is_nearest_to_own_class(
    similarities: Float[Tensor, "examples classes"], labels: Int[Tensor, " examples"]
) -> Bool[Tensor, " examples"]:
    """Return whether an example is nearest to its own class's mean; a guess has 1 / classes."""
    return similarities.argmax(1) == labels


def own_class_margin(
    similarities: Float[Tensor, "examples classes"], labels: Int[Tensor, " examples"]
) -> Float[Tensor, " examples"]:
    """Return the similarity to the own class's mean minus the mean similarity to other classes.

    The margin is 0 if the example is no more similar to its own class.
    """
    own = similarities.gather(1, labels[:, None])[:, 0]
    others = (similarities.sum(1) - own) / (similarities.shape[1] - 1)
    return own - others
