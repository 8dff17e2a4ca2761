"""How much synthetic examples look like the mean image of the class they stand for."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from overheard.core.examples import Examples


def likeness(
    inputs: Float[Tensor, "examples ..."], held: Examples, classes: int
) -> Float[Tensor, "examples classes"]:
    """The cosine of each example with each class's mean image, the mean of all taken off both.

    -1 to 1; of an example that is the mean of all it is 0. All classes weigh alike in the mean,
    however many examples each has.

    Args:
        inputs: what is compared.
        held: the images whose means are taken; of each class one or more.
        classes: how many.

    """
    flat = held.inputs.flatten(1).double()
    means = torch.stack([flat[held.labels == label].mean(0) for label in range(classes)])
    middle = means.mean(0)
    own = normalize(inputs.flatten(1).double() - middle, dim=1)
    return own @ normalize(means - middle, dim=1).T


def looks_like_its_class(
    told: Float[Tensor, "examples classes"], labels: Int[Tensor, " examples"]
) -> Bool[Tensor, " examples"]:
    """Whether an example is most like the mean of its own class; a guess is in 1 / classes."""
    return told.argmax(1) == labels


def lead(
    told: Float[Tensor, "examples classes"], labels: Int[Tensor, " examples"]
) -> Float[Tensor, " examples"]:
    """By how much an example is more like its own class's mean than like others', on average.

    0 where it looks no more like its own.
    """
    own = told.gather(1, labels[:, None])[:, 0]
    others = (told.sum(1) - own) / (told.shape[1] - 1)
    return own - others
