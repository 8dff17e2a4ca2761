"""Reads how much of the pull of each class explains what the last layer did."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.messages import Weights, moved
from overheard.learning.features import features_of_cohort
from overheard.learning.initial import fresh
from overheard.learning.last_layer import LastLayer, last_layer
from overheard.simulation.probe import Probe, Scene

RIDGE = 1e-2
"""Of the fit of a single row, beside the mean square of its columns: few held-out examples make
the pulls of two classes nearly alike."""

JOINT_RIDGE = 1e-3
"""Of the fit of all rows by one set of factors, which is better determined."""

LARGEST_FACTOR = 1e15
"""A model that is sure of all held-out examples hardly pulls: no factor explains a change then,
and infinities would spread to every number computed from it. Squares of this fit float32."""


@final
@dataclass(frozen=True, slots=True)
class ClassPull(Probe):
    """How much of the pull of each class explains the change of the last layer.

    A step of descent on an example of class c moves row k of the last layer by
    rate * (1{k = c} - p_k) h, where p is its output and h its features. The mean of that over
    held-out examples of class c is the *pull* of c on row k. The change of row k is fitted by
    the pulls on it, with a small ridge, which gives a factor for each class; and all rows are
    fitted by one common set of factors, in proportion to the label shares as far as the pulls
    stay what they are. Pulls are taken at the broadcast, and as the mean of those there and at
    the client's own model (the trapezoid rule along the way).

    3 C + 2 rows of C numbers, see `factors_of_rows`, `common_factors`: entry (c, k) of the
    first C x C is the factor of class c on row k with pulls at the broadcast; then the same
    with mean pulls; then the inner products of mean pull and change; the last two rows are the
    common factors, at the broadcast and with mean pulls.
    """

    def read(
        self, scene: Scene, deltas: Sequence[Weights]
    ) -> Float[Tensor, "clients rows classes"]:
        """One forward pass over the held-out examples a client."""
        layer = last_layer(fresh(scene.build_model, scene.seed))
        (before,) = _features(scene, [scene.broadcast])
        start = _pulls(before, scene.broadcast, layer, scene)
        local = (moved(scene.broadcast, delta) for delta in deltas)
        rows = []
        for delta, features in zip(deltas, _features(scene, local), strict=True):
            there = moved(_of_layer(scene.broadcast, layer), _of_layer(delta, layer))
            middle = (start + _pulls(features, there, layer, scene)) / 2
            change = _with_bias(delta, layer)
            products = torch.einsum("kcf,kf->ck", middle, change)
            parts = (
                _by_row(start, change),
                _by_row(middle, change),
                products,
                torch.stack((_jointly(start, change), _jointly(middle, change))),
            )
            rows.append(torch.cat(parts))
        return torch.stack(rows).clamp(-LARGEST_FACTOR, LARGEST_FACTOR).float()


def factors_of_rows(
    read: Float[Tensor, "*many rows classes"],
) -> Float[Tensor, "*many three classes classes"]:
    """Per entry (class, row): the factor at the broadcast, with mean pulls, and the product."""
    classes = read.shape[-1]
    return read[..., : 3 * classes, :].reshape(*read.shape[:-2], 3, classes, classes)


def common_factors(
    read: Float[Tensor, "*many rows classes"],
) -> Float[Tensor, "*many two classes"]:
    """One factor a class for all rows: at the broadcast, and with mean pulls."""
    return read[..., -2:, :]


def _features(
    scene: Scene, cohort: Iterable[Weights]
) -> Iterator[Float[Tensor, "examples features"]]:
    return features_of_cohort(
        scene.build_model, cohort, scene.held_out.inputs, device=scene.device
    )


def _of_layer(weights: Weights, layer: LastLayer) -> dict[str, Tensor]:
    return {name: weights[name] for name in (layer.weight, layer.bias) if name is not None}


def _with_bias(weights: Weights, layer: LastLayer) -> Float[Tensor, "classes columns"]:
    columns = [weights[layer.weight].cpu().double()]
    if layer.bias is not None:
        columns.append(weights[layer.bias].cpu().double().unsqueeze(1))
    return torch.cat(columns, 1)


def _pulls(
    features: Float[Tensor, "examples features"],
    weights: Weights,
    layer: LastLayer,
    scene: Scene,
) -> Float[Tensor, "classes pulling columns"]:
    """Entry (k, c): the pull of class c on row k."""
    rows = _with_bias(weights, layer)
    known = features.double()
    if layer.bias is not None:
        known = torch.cat((known, known.new_ones(len(known), 1)), 1)
    labels = scene.held_out.labels.cpu()
    errors = -(known @ rows.T).softmax(1)  # (examples, classes)
    errors[torch.arange(len(labels)), labels] += 1
    return torch.stack([_mean_of(errors, known, labels == c) for c in range(len(rows))], 1)


def _mean_of(
    errors: Float[Tensor, "examples classes"],
    features: Float[Tensor, "examples columns"],
    own: Int[Tensor, " examples"] | Tensor,
) -> Float[Tensor, "classes columns"]:
    return errors[own].T @ features[own] / max(1, int(own.sum()))


def _by_row(
    pulls: Float[Tensor, "classes pulling columns"], change: Float[Tensor, "classes columns"]
) -> Float[Tensor, "pulling classes"]:
    products = pulls @ pulls.transpose(1, 2)  # (classes, pulling, pulling)
    goal = torch.einsum("kcf,kf->kc", pulls, change)
    return _solve(products, goal, RIDGE).T


def _jointly(
    pulls: Float[Tensor, "classes pulling columns"], change: Float[Tensor, "classes columns"]
) -> Float[Tensor, " pulling"]:
    flat = pulls.transpose(0, 1).flatten(1)  # (pulling, params)
    return _solve((flat @ flat.T)[None], (flat @ change.flatten())[None], JOINT_RIDGE)[0]


def _solve(
    products: Float[Tensor, "many pulling pulling"],
    goal: Float[Tensor, "many pulling"],
    ridge: float,
) -> Float[Tensor, "many pulling"]:
    scale = products.diagonal(dim1=1, dim2=2).mean(1)[:, None, None]
    tiny = torch.finfo(products.dtype).tiny
    eye = torch.eye(products.shape[1], dtype=products.dtype)
    factors: Tensor = torch.linalg.solve(products + (ridge * scale + tiny**0.5) * eye, goal)
    return factors
