"""A probe (see `Probe`) that expresses a change of the last layer by class gradients."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from overheard.core.messages import Weights, apply_update
from overheard.learning.custom_networks.single_output import change_by_class, weight_by_class
from overheard.learning.features import features_of_models
from overheard.learning.initialization import fresh_model
from overheard.learning.last_layer import LastLayer, find_last_layer
from overheard.simulation.probe import Probe, ProbeContext

ROW_RIDGE = 1e-2
"""Ridge of the fit of a single row, relative to the mean square of its columns. With few
held-out examples, the gradients of two classes are nearly equal."""

JOINT_RIDGE = 1e-3
"""Ridge of the fit of all rows by one set of factors, which is better determined."""

LARGEST_FACTOR = 1e15
"""Bound of all factors. If a model is certain of all held-out examples, gradients vanish, and
factors would be infinite. Squares of this bound are within the range of float32."""


@final
@dataclass(frozen=True, slots=True)
class ClassGradientFit(Probe):
    """Fit the change of the last layer by a linear combination of class gradients.

    Let p be the output of the model on an example of class c, and h its features. A gradient
    step changes row k of the last layer by rate * (1{k = c} - p_k) h. The mean of
    (1{k = c} - p_k) h over held-out examples of class c is the *class gradient* of c on row k.
    Ridge regression of the change of row k on its class gradients gives one factor per
    class. A second fit has the same factors for all rows (common factors). They are
    proportional to the label shares if class gradients stay constant during local training.
    Both fits are made twice: with class gradients at the broadcast, and with the mean of those
    at the broadcast and at the client's model (trapezoid rule).

    The reading of a client has 3 C + 2 rows of C numbers; see `row_factors` and
    `common_factors`. Entry (c, k) of the first C x C is the factor of class c on row k with
    class gradients at the broadcast. The second C x C is the same with mean class gradients.
    The third holds the inner products of mean class gradient and change. The last two rows are
    the common factors, at the broadcast and with mean class gradients.
    """

    def read(
        self, context: ProbeContext, deltas: Sequence[Weights]
    ) -> Float[Tensor, "clients rows classes"]:
        """Return the factors of each client; runs its model once on the held-out examples."""
        layer = find_last_layer(fresh_model(context.build_model, context.seed), context.classes)
        (start_features,) = _features(context, [context.broadcast])
        start_gradients = _class_gradients(start_features, context.broadcast, layer, context)
        local_models = (apply_update(context.broadcast, delta) for delta in deltas)
        at_start, with_means = list[_Equations](), list[_Equations]()
        start_products = _products(start_gradients)
        for delta, features in zip(deltas, _features(context, local_models), strict=True):
            local_layer = apply_update(
                _layer_weights(context.broadcast, layer), _layer_weights(delta, layer)
            )
            mean_gradients = (
                start_gradients + _class_gradients(features, local_layer, layer, context)
            ) / 2
            change = change_by_class(_with_bias(delta, layer))
            at_start.append(_Equations(start_products, _targets(start_gradients, change)))
            with_means.append(
                _Equations(_products(mean_gradients), _targets(mean_gradients, change))
            )
        first_rows, first_joint = _solve_all(at_start)
        mean_rows, mean_joint = _solve_all(with_means)
        products = torch.stack([one.targets.of_rows.T for one in with_means])
        common = torch.stack((first_joint, mean_joint), 1)  # (clients, two, classes)
        readings = torch.cat((first_rows, mean_rows, products, common), 1)
        return readings.clamp(-LARGEST_FACTOR, LARGEST_FACTOR).float()


def row_factors(
    reading: Float[Tensor, "*many rows classes"],
) -> Float[Tensor, "*many three classes classes"]:
    """Return three matrices of the reading, each with an entry for every class and row.

    They are the factors with class gradients at the broadcast, the factors with mean class
    gradients, and the inner products of mean class gradient and change.
    """
    classes = reading.shape[-1]
    return reading[..., : 3 * classes, :].reshape(*reading.shape[:-2], 3, classes, classes)


def common_factors(
    reading: Float[Tensor, "*many rows classes"],
) -> Float[Tensor, "*many two classes"]:
    """Return the common factors, with class gradients at the broadcast and with mean ones."""
    return reading[..., -2:, :]


def _features(
    context: ProbeContext, models: Iterable[Weights]
) -> Iterator[Float[Tensor, "examples features"]]:
    return features_of_models(
        context.build_model, models, context.held_out.inputs, device=context.device
    )


def _layer_weights(weights: Weights, layer: LastLayer) -> dict[str, Tensor]:
    return {name: weights[name] for name in (layer.weight, layer.bias) if name is not None}


def _with_bias(weights: Weights, layer: LastLayer) -> Float[Tensor, "outputs columns"]:
    columns = [weights[layer.weight].cpu().double()]
    if layer.bias is not None:
        columns.append(weights[layer.bias].cpu().double().unsqueeze(1))
    return torch.cat(columns, 1)


def _class_gradients(
    features: Float[Tensor, "examples features"],
    weights: Weights,
    layer: LastLayer,
    context: ProbeContext,
) -> Float[Tensor, "classes gradients columns"]:
    """Return the class gradients: entry (k, c) is that of class c on row k."""
    rows = weight_by_class(_with_bias(weights, layer))
    inputs = features.double()
    if layer.bias is not None:
        inputs = torch.cat((inputs, inputs.new_ones(len(inputs), 1)), 1)
    labels = context.held_out.labels.cpu()
    errors = -(inputs @ rows.T).softmax(1)  # (examples, classes)
    errors[torch.arange(len(labels)), labels] += 1
    order = labels.argsort(stable=True)
    counts = labels.bincount(minlength=len(rows)).tolist()
    by_class = zip(
        torch.split(errors[order], counts), torch.split(inputs[order], counts), strict=True
    )
    return torch.stack([own.T @ numbers / max(1, len(own)) for own, numbers in by_class], 1)


@dataclass(frozen=True, slots=True)
class _Parts:
    """Products with class gradients, row by row of the last layer and for all rows together.

    Args:
        of_rows: by row of the layer, then by class.
        of_all: by class.

    """

    of_rows: Tensor
    of_all: Tensor


@dataclass(frozen=True, slots=True)
class _Equations:
    """The normal equations of one client's factors.

    Args:
        products: of class gradients with one another.
        targets: of class gradients with the change of the last layer.

    """

    products: _Parts
    targets: _Parts


def _products(gradients: Float[Tensor, "classes gradients columns"]) -> _Parts:
    flat = gradients.transpose(0, 1).flatten(1)  # (gradients, params)
    return _Parts(gradients @ gradients.transpose(1, 2), flat @ flat.T)


def _targets(
    gradients: Float[Tensor, "classes gradients columns"],
    change: Float[Tensor, "classes columns"],
) -> _Parts:
    flat = gradients.transpose(0, 1).flatten(1)  # (gradients, params)
    return _Parts(torch.einsum("kcf,kf->kc", gradients, change), flat @ change.flatten())


def _solve_all(
    equations: Sequence[_Equations],
) -> tuple[Float[Tensor, "clients gradients classes"], Float[Tensor, "clients gradients"]]:
    """Return the factors of each row and the common factors of all clients at once."""
    rows = _solve(
        torch.stack([one.products.of_rows for one in equations]).flatten(0, 1),
        torch.stack([one.targets.of_rows for one in equations]).flatten(0, 1),
        ROW_RIDGE,
    )
    common = _solve(
        torch.stack([one.products.of_all for one in equations]),
        torch.stack([one.targets.of_all for one in equations]),
        JOINT_RIDGE,
    )
    return rows.view(len(equations), -1, rows.shape[1]).transpose(1, 2), common


def _solve(
    products: Float[Tensor, "many gradients gradients"],
    targets: Float[Tensor, "many gradients"],
    ridge: float,
) -> Float[Tensor, "many gradients"]:
    scale = products.diagonal(dim1=1, dim2=2).mean(1)[:, None, None]
    tiny = torch.finfo(products.dtype).tiny
    eye = torch.eye(products.shape[1], dtype=products.dtype)
    factors: Tensor = torch.linalg.solve(products + (ridge * scale + tiny**0.5) * eye, targets)
    return factors
