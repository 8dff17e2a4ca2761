"""Training on synthetic examples, and its gradients with respect to them.

FLiP (arXiv 2410.19548), equation (3) and Algorithm 1, lines 10 to 15. There a step uses one
example; here any number. The backward pass applies the chain rule step by step, without an
autograd graph of the whole training. Let L_i be the sum of the losses of the examples of step i
at the weights w_i before it, each times its rate r. Then w_{i+1} = w_i - grad L_i. Let v_{i+1}
be the gradient of a loss with respect to w_{i+1}. Then:

    gradient for (x, y, r) of the step = -d/d(x, y, r) (v_{i+1} . grad_w L_i)
    v_i = v_{i+1} - d/dw (v_{i+1} . grad_w L_i).

All are gradients of one function of (w, x, y, r), v_{i+1} . grad_w L_i. So the cost of a step
is known in advance, and weights are stored only at checkpoints. Steps are traced once to a flat
list of operations, which runs two to three times as fast on small networks.
"""

from collections.abc import Callable, Sequence
from math import ceil, sqrt
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from overheard.learning.distillation.synthetic import SyntheticExamples

MAX_CHECKPOINT_BYTES = 2**31
"""Memory for the weights of all steps, in bytes; if they need more, some are computed twice."""

Parameters = Sequence[Tensor]


@final
class UnrolledTraining:
    """The training of one network on synthetic examples.

    If the set has a client axis, each client trains separately. Otherwise one training is
    shared, and clients differ only in the final gradients. This is the case in the first step
    of a round, when all clients have the same set.

    Args:
        model: the network; its weights are not used.
        examples_per_step: examples per step; the last step takes the rest.
        max_bytes: memory for the weights of all steps.

    Attributes:
        model: the network.

    """

    def __init__(
        self,
        model: nn.Module,
        examples_per_step: int = 1,
        max_bytes: int = MAX_CHECKPOINT_BYTES,
    ) -> None:
        names = [name for name, _ in model.named_parameters()]

        def loss(weights: Parameters, inputs: Tensor, labels: Tensor, rates: Tensor) -> Tensor:
            named = dict(zip(names, weights, strict=True))
            logits: Tensor = functional_call(model, named, (inputs,))
            return -(rates * (labels * logits.log_softmax(1)).sum(1)).sum()

        self.model = model
        self._loss = loss
        self._at_once = examples_per_step
        self._most_bytes = max_bytes
        # Any: traced functions have the signatures of the original ones.
        self._traced = dict[tuple[str | int, ...], Any]()

    def train(self, start: Parameters, examples: SyntheticExamples) -> list[Tensor]:
        """Return the weights after one pass, of each client if the set has a client axis."""
        per_client = examples.rates.ndim == 2
        weights = _copy_per_client(start, len(examples.rates)) if per_client else list(start)
        with torch.no_grad():
            for batch in self._batches(examples):
                weights = self._step(weights, batch)
        return weights

    def gradients(
        self,
        start: Parameters,
        examples: SyntheticExamples,
        final_gradients: Callable[[Parameters], Parameters],
    ) -> SyntheticExamples:
        """Compute the gradients of each client's loss after training, for all of its examples.

        Args:
            start: weights before training.
            examples: the training set, shared or of each client.
            final_gradients: function from the final weights to the gradient of each client's
                loss with respect to them, clients first.

        """
        per_client = examples.rates.ndim == 2
        first = _copy_per_client(start, len(examples.rates)) if per_client else list(start)
        batches = self._batches(examples)
        size = sum(one.numel() * one.element_size() for one in first)
        stride = checkpoint_interval(len(batches), size, self._most_bytes)
        with torch.no_grad():
            checkpoints, weights = [first], first
            for number, batch in enumerate(batches, start=1):
                weights = self._step(weights, batch)
                if number % stride == 0:
                    checkpoints.append(weights)
            weight_gradients = list(final_gradients(weights))
            gradients: list[tuple[Tensor, ...]] = []
            for begin in reversed(range(0, len(batches), stride)):
                segment = batches[begin : begin + stride]
                segment_weights = [checkpoints[begin // stride]]
                for batch in segment[:-1]:
                    segment_weights.append(self._step(segment_weights[-1], batch))
                for batch in reversed(segment):
                    weight_gradients, *batch_gradients = self._back(
                        segment_weights.pop(), batch, weight_gradients
                    )
                    gradients.append(tuple(batch_gradients))
            inputs, labels, rates = zip(*reversed(gradients), strict=True)
            return SyntheticExamples(
                torch.cat(inputs, 1), torch.cat(labels, 1), torch.cat(rates, 1)
            )

    def _batches(self, examples: SyntheticExamples) -> list[SyntheticExamples]:
        """Split the examples into the batches of the steps."""
        axis = examples.rates.ndim - 1
        parts = [torch.split(one, self._at_once, axis) for one in examples]
        return [SyntheticExamples(*batch) for batch in zip(*parts, strict=True)]

    def _step(self, weights: Parameters, batch: SyntheticExamples) -> list[Tensor]:
        per_client = batch.rates.ndim == 2

        def step(weights: Parameters, x: Tensor, y: Tensor, rates: Tensor) -> list[Tensor]:
            gradients = grad(self._loss)(tuple(weights), x, y, rates)
            return [one - gradient for one, gradient in zip(weights, gradients, strict=True)]

        new: list[Tensor] = self._run(
            "step", batch, vmap(step) if per_client else step, weights
        )
        return new

    def _back(
        self, weights: Parameters, batch: SyntheticExamples, weight_gradients: Parameters
    ) -> tuple[list[Tensor], Tensor, Tensor, Tensor]:
        def back(
            weights: Parameters, x: Tensor, y: Tensor, rates: Tensor, after: Parameters
        ) -> tuple[list[Tensor], Tensor, Tensor, Tensor]:
            def product(
                weights: tuple[Tensor, ...], x: Tensor, y: Tensor, rates: Tensor
            ) -> Tensor:
                gradients = grad(self._loss)(weights, x, y, rates)
                return torch.stack(
                    [(one * two).sum() for one, two in zip(after, gradients, strict=True)]
                ).sum()

            changes, *gradients = grad(product, argnums=(0, 1, 2, 3))(
                tuple(weights), x, y, rates
            )
            before = [one - change for one, change in zip(after, changes, strict=True)]
            for_x, for_y, for_rates = gradients
            return before, -for_x, -for_y, -for_rates

        axis = 0 if batch.rates.ndim == 2 else None
        result: tuple[list[Tensor], Tensor, Tensor, Tensor] = self._run(
            "back",
            batch,
            vmap(back, in_dims=(axis, axis, axis, axis, 0)),
            weights,
            weight_gradients,
        )
        return result

    # Any: see `_traced`.
    def _run(
        self,
        name: str,
        batch: SyntheticExamples,
        function: Callable[..., Any],
        weights: Parameters,
        *weight_gradients: Parameters,
    ) -> Any:
        """Run the traced function; trace it the first time."""
        arguments = weights, *batch, *weight_gradients
        # A shared set has no client axis; then the gradients show the number of clients.
        clients = len(weight_gradients[0][0]) if weight_gradients else 0
        key = name, clients, *batch.rates.shape
        if key not in self._traced:
            graph = make_fx(function)(*arguments)
            graph.graph.eliminate_dead_code()
            graph.recompile()
            self._traced[key] = graph
        return self._traced[key](*arguments)


def checkpoint_interval(steps: int, size: int, max_bytes: int) -> int:
    """Return the number of steps between checkpoints: 1 if all weights fit into memory.

    Weights between two checkpoints are recomputed in the backward pass, one segment at a time.
    So steps / stride + stride copies are in memory at once, and sqrt(steps) is the best stride.
    """
    if steps * size <= max_bytes:
        return 1
    return ceil(sqrt(steps))


def checkpoint_bytes(steps: int, size: int, max_bytes: int = MAX_CHECKPOINT_BYTES) -> int:
    """Return the memory for checkpoints of weights of `size` bytes."""
    stride = checkpoint_interval(steps, size, max_bytes)
    return size * (ceil(steps / stride) + (stride if stride > 1 else 0))


def _copy_per_client(start: Parameters, members: int) -> list[Tensor]:
    return [one.expand(members, *one.shape).contiguous() for one in start]
