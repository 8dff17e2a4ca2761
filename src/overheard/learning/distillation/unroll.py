"""Training on synthetic examples one by one, and how what it comes to hangs on them.

FLiP (arXiv 2410.19548), equation (3) and Algorithm 1, lines 10 to 15. In place of a graph of
the whole training the chain rule is walked back by hand: with l_i the loss of example i at the
weights w_i before its step, w_{i+1} = w_i - r_i grad l_i, and v_{i+1} the slope of a loss after
w_{i+1},

    slope after r_i = -v_{i+1} . grad_w l_i
    slope after (x_i, y_i) = -r_i d/d(x_i, y_i) (v_{i+1} . grad_w l_i)
    v_i = v_{i+1} - r_i H_i v_{i+1}.

All three are of one function of (w, x, y), v_{i+1} . grad_w l_i: its value and its slopes. What
a step costs is then known before, weights are kept at some steps alone, and steps are recorded
once as a plain list of operations, which runs two to three times as fast on small networks.
"""

from collections.abc import Callable, Sequence
from math import ceil, sqrt
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, grad_and_value, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from overheard.learning.distillation.synthetic import Synthetic

MOST_BYTES = 2**31
"""Memory for the weights that are kept on the way: beyond it, some are worked out twice."""

Parameters = Sequence[Tensor]


@final
class Unroll:
    """One network, trained on synthetic examples.

    Members train apart where sets have members; else one training is shared, and only what
    comes after it is each member's own: so it is in a round's first step, in which all have
    the same set.

    Args:
        model: the network; its own weights are not used.
        most_bytes: memory for weights on the way.

    """

    def __init__(self, model: nn.Module, most_bytes: int = MOST_BYTES) -> None:
        names = [name for name, _ in model.named_parameters()]

        def loss(weights: Parameters, inputs: Tensor, label: Tensor) -> Tensor:
            named = dict(zip(names, weights, strict=True))
            logits: Tensor = functional_call(model, named, (inputs.unsqueeze(0),))
            return -(label * logits[0].log_softmax(0)).sum()

        self._loss = loss
        self._most_bytes = most_bytes
        # Any: operations as they were recorded, which are called like what they are of.
        self._recorded = dict[tuple[str, bool], Any]()

    def train(self, start: Parameters, examples: Synthetic) -> list[Tensor]:
        """The weights after one pass: of each member, where the set has members."""
        apart = examples.rates.ndim == 2
        weights = _of_each(start, len(examples.rates)) if apart else list(start)
        with torch.no_grad():
            for number in range(examples.rates.shape[-1]):
                weights = self._step(weights, examples, number)
        return weights

    def slopes(
        self,
        start: Parameters,
        examples: Synthetic,
        after: Callable[[Parameters], Parameters],
    ) -> Synthetic:
        """How each member's loss after the training hangs on the examples, and their rates.

        Args:
            start: weights before it.
            examples: trained on, of all members together or of each.
            after: from the weights at the end to the slope of each member's loss after them,
                members first.

        """
        apart = examples.rates.ndim == 2
        first = _of_each(start, len(examples.rates)) if apart else list(start)
        steps = examples.rates.shape[-1]
        size = sum(one.numel() * one.element_size() for one in first)
        stride = stretch(steps, size, self._most_bytes)
        with torch.no_grad():
            kept, weights = [first], first
            for number in range(steps):
                weights = self._step(weights, examples, number)
                if (number + 1) % stride == 0:
                    kept.append(weights)
            ends = list(after(weights))
            found: list[tuple[Tensor, ...]] = []
            for begin in reversed(range(0, steps, stride)):
                way = [kept[begin // stride]]
                for number in range(begin, min(begin + stride, steps) - 1):
                    way.append(self._step(way[-1], examples, number))
                for number in reversed(range(begin, begin + len(way))):
                    ends, *told = self._back(way.pop(), examples, number, ends)
                    found.append(tuple(told))
            inputs, labels, rates = zip(*reversed(found), strict=True)
            return Synthetic(
                torch.stack(inputs, 1), torch.stack(labels, 1), torch.stack(rates, 1)
            )

    def _step(self, weights: Parameters, examples: Synthetic, number: int) -> list[Tensor]:
        apart = examples.rates.ndim == 2

        def step(weights: Parameters, x: Tensor, y: Tensor, rate: Tensor) -> list[Tensor]:
            slopes = grad(self._loss)(tuple(weights), x, y)
            return [one - rate * slope for one, slope in zip(weights, slopes, strict=True)]

        told: list[Tensor] = self._run(
            "step", apart, vmap(step) if apart else step, weights, *_at(examples, number)
        )
        return told

    def _back(
        self, weights: Parameters, examples: Synthetic, number: int, ends: Parameters
    ) -> tuple[list[Tensor], Tensor, Tensor, Tensor]:
        apart = examples.rates.ndim == 2

        def back(
            weights: Parameters, x: Tensor, y: Tensor, rate: Tensor, end: Parameters
        ) -> tuple[list[Tensor], Tensor, Tensor, Tensor]:
            def fast(weights: tuple[Tensor, ...], x: Tensor, y: Tensor) -> Tensor:
                slopes = grad(self._loss)(weights, x, y)
                return torch.stack(
                    [(one * slope).sum() for one, slope in zip(end, slopes, strict=True)]
                ).sum()

            slopes, loss = grad_and_value(fast, argnums=(0, 1, 2))(tuple(weights), x, y)
            before = [one - rate * bend for one, bend in zip(end, slopes[0], strict=True)]
            return before, -rate * slopes[1], -rate * slopes[2], -loss

        own = 0 if apart else None
        told: tuple[list[Tensor], Tensor, Tensor, Tensor] = self._run(
            "back",
            apart,
            vmap(back, in_dims=(own, own, own, own, 0)),
            weights,
            *_at(examples, number),
            ends,
        )
        return told

    # Any: see `_recorded`.
    def _run(self, name: str, apart: bool, what: Callable[..., Any], *given: Any) -> Any:
        """Do it as it was recorded; the first time, record it."""
        key = name, apart
        if key not in self._recorded:
            graph = make_fx(what)(*given)
            graph.graph.eliminate_dead_code()
            graph.recompile()
            self._recorded[key] = graph
        return self._recorded[key](*given)


def stretch(steps: int, size: int, most_bytes: int) -> int:
    """Every how many steps weights are kept: 1 where all fit, else as few as possible.

    Weights between two kept ones are worked out a second time on the way back, a stretch at a
    time: steps / stride + stride copies are in memory at once.
    """
    if steps * size <= most_bytes:
        return 1
    return ceil(sqrt(steps))


def bytes_kept(steps: int, size: int, most_bytes: int = MOST_BYTES) -> int:
    """Memory for weights on the way, for weights of so many bytes."""
    stride = stretch(steps, size, most_bytes)
    return size * (ceil(steps / stride) + (stride if stride > 1 else 0))


def _of_each(start: Parameters, members: int) -> list[Tensor]:
    return [one.expand(members, *one.shape).contiguous() for one in start]


def _at(examples: Synthetic, number: int) -> tuple[Tensor, Tensor, Tensor]:
    apart = examples.rates.ndim == 2
    inputs, labels, rates = (one[:, number] if apart else one[number] for one in examples)
    return inputs, labels, rates
