"""A probe of the part of an update that the auxiliary examples cannot explain."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import functional_call

from overheard.core.messages import Weights
from overheard.learning.initialization import model_at
from overheard.learning.loss import mean_loss
from overheard.learning.sent_tensors import trainable_parameters
from overheard.simulation.probe import Probe, ProbeContext

LARGEST_SIDE = 256
"""Most rows or columns of a matrix whose singular values are computed."""

RIDGE = 1e-6
"""Added to the products of class gradients, relative to their mean square."""

SMALLEST = 1e-12
"""Lower bound of all fractions, so that their logarithms are finite."""


@final
@dataclass(frozen=True, slots=True)
class UnexplainedUpdate(Probe):
    """How much of an update lies outside the class gradients, and the level of its noise.

    The gradient of the loss on the held-out examples of one class, at the broadcast, is that
    class's *gradient*. One step on clean examples is a mixture of class gradients, up to the
    peculiarities of single examples. Local steps bend it away, but for virtual and real clients
    alike. So real clients have a larger part unexplained than virtual ones if their examples
    differ from the auxiliary ones, or if noise was added to their updates.

    The reading of a client has three natural logarithms:

    1. The fraction (0..1) of the squared length of the first matrix of weights that no mixture
       of class gradients explains. This matrix is nearest to the inputs.
    2. The same of the whole update.
    3. The median singular value of the largest matrix, over the root mean square of all. Clean
       updates have few large directions; noise has the same size in all of them.
    """

    def read(
        self, context: ProbeContext, deltas: Sequence[Weights]
    ) -> Float[Tensor, "clients three"]:
        """Return the three logarithms of each client; runs no local model."""
        gradients = list(_class_gradients(context))  # by class, then by name
        names = list(gradients[0])
        matrices = [name for name in names if context.broadcast[name].dim() > 1] or names
        largest = max(matrices, key=lambda name: context.broadcast[name].numel())
        flat = {
            name: torch.stack([gradient[name].flatten() for gradient in gradients])
            for name in names
        }  # (classes, params) each
        products = {name: (own @ own.T).double() for name, own in flat.items()}
        targets = {
            name: torch.stack([own @ delta[name].flatten() for delta in deltas])
            for name, own in flat.items()
        }  # (clients, classes) each
        squares = {
            name: torch.stack([delta[name].double().square().sum() for delta in deltas])
            for name in names
        }
        first = matrices[0]
        parts = (
            _unexplained(products[first], targets[first].double(), squares[first]),
            _unexplained(
                torch.stack(list(products.values())).sum(0),
                torch.stack(list(targets.values())).double().sum(0),
                torch.stack(list(squares.values())).sum(0),
            ),
            torch.stack([_median_singular_value(delta[largest]) for delta in deltas]),
        )
        # A diverged update stays recognisable: clamping keeps NaN.
        return torch.stack(parts, 1).clamp(min=SMALLEST).log().float()


def _class_gradients(context: ProbeContext) -> Iterator[dict[str, Tensor]]:
    """Yield the gradient of each class on the held-out examples, on the CPU."""
    model = model_at(context.build_model, context.broadcast, context.device)
    weights = {
        name: context.broadcast[name].to(context.device).detach().requires_grad_()
        for name in trainable_parameters(model)
    }
    loss = "cross_entropy" if context.recipe is None else context.recipe.loss
    for label in range(context.classes):
        chosen = context.held_out.labels == label
        inputs = context.held_out.inputs[chosen].to(context.device)
        labels = context.held_out.labels[chosen].to(context.device)
        with torch.enable_grad():
            value = mean_loss(functional_call(model, weights, (inputs,)), labels, loss, 0.0)
            # A part of the model may not influence the outputs.
            parts = torch.autograd.grad(
                value, list(weights.values()), allow_unused=True, materialize_grads=True
            )
        yield {name: part.detach().cpu() for name, part in zip(weights, parts, strict=True)}


def _unexplained(
    products: Float[Tensor, "classes classes"],
    targets: Float[Tensor, "clients classes"],
    squares: Float[Tensor, " clients"],
) -> Float[Tensor, " clients"]:
    """Return the fraction of the squared length outside the span of the gradients."""
    scale, dtype = products.diagonal().mean(), products.dtype
    # Above 0 also where all class gradients are 0, as those of a LoRA adapter at its start are.
    ridge = RIDGE * scale + torch.finfo(dtype).tiny ** 0.5
    regular = products + ridge * torch.eye(len(products), dtype=dtype)
    explained = (targets * torch.linalg.solve(regular, targets.T).T).sum(1)
    unexplained: Tensor = (1 - explained / squares.clamp(min=SMALLEST)).clamp(max=1)
    return unexplained


def _median_singular_value(change: Tensor) -> Float[Tensor, ""]:
    """Return the median singular value over the root mean square of all."""
    matrix = (change if change.dim() > 1 else change[None]).flatten(1).double()
    matrix = matrix if len(matrix) <= matrix.shape[1] else matrix.T
    matrix = matrix[:LARGEST_SIDE]
    if not bool(matrix.isfinite().all()):
        return matrix.new_tensor(torch.nan)
    squares = torch.linalg.eigvalsh(matrix @ matrix.T).clamp(min=0)
    ratio: Tensor = squares.median() / squares.mean().clamp(min=SMALLEST)
    return ratio.sqrt()
