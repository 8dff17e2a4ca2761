"""Training on synthetic examples, and how what it comes to hangs on them.

FLiP (arXiv 2410.19548), equation (3) and Algorithm 1, lines 10 to 15, where each step learns
from one example; here from as many as one likes. In place of a graph of the whole training the
chain rule is walked back by hand. With L_i the sum of the losses of the examples of step i at
the weights w_i before it, each times its own rate r; w_{i+1} = w_i - grad L_i; and v_{i+1} the
slope of a loss after w_{i+1}:

    slope after (x, y, r) of the step = -d/d(x, y, r) (v_{i+1} . grad_w L_i)
    v_i = v_{i+1} - d/dw (v_{i+1} . grad_w L_i).

All are slopes of one function of (w, x, y, r), v_{i+1} . grad_w L_i. What a step costs is then
known before, weights are kept at some steps alone, and steps are recorded once as a plain list
of operations, which runs two to three times as fast on small networks.
"""

from collections.abc import Callable, Sequence
from math import ceil, sqrt
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
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
        at_once: examples that a step learns from; the last one takes what is left.
        most_bytes: memory for weights on the way.

    Attributes:
        model: the network.

    """

    def __init__(
        self, model: nn.Module, at_once: int = 1, most_bytes: int = MOST_BYTES
    ) -> None:
        names = [name for name, _ in model.named_parameters()]

        def loss(weights: Parameters, inputs: Tensor, labels: Tensor, rates: Tensor) -> Tensor:
            named = dict(zip(names, weights, strict=True))
            logits: Tensor = functional_call(model, named, (inputs,))
            return -(rates * (labels * logits.log_softmax(1)).sum(1)).sum()

        self.model = model
        self._loss = loss
        self._at_once = at_once
        self._most_bytes = most_bytes
        # Any: operations as they were recorded, which are called like what they are of.
        self._recorded = dict[tuple[str | int, ...], Any]()

    def train(self, start: Parameters, examples: Synthetic) -> list[Tensor]:
        """The weights after one pass: of each member, where the set has members."""
        apart = examples.rates.ndim == 2
        weights = _of_each(start, len(examples.rates)) if apart else list(start)
        with torch.no_grad():
            for lesson in self._lessons(examples):
                weights = self._step(weights, lesson)
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
        lessons = self._lessons(examples)
        size = sum(one.numel() * one.element_size() for one in first)
        stride = stretch(len(lessons), size, self._most_bytes)
        with torch.no_grad():
            kept, weights = [first], first
            for number, lesson in enumerate(lessons, start=1):
                weights = self._step(weights, lesson)
                if number % stride == 0:
                    kept.append(weights)
            ends = list(after(weights))
            found: list[tuple[Tensor, ...]] = []
            for begin in reversed(range(0, len(lessons), stride)):
                stretched = lessons[begin : begin + stride]
                way = [kept[begin // stride]]
                for lesson in stretched[:-1]:
                    way.append(self._step(way[-1], lesson))
                for lesson in reversed(stretched):
                    ends, *told = self._back(way.pop(), lesson, ends)
                    found.append(tuple(told))
            inputs, labels, rates = zip(*reversed(found), strict=True)
            return Synthetic(torch.cat(inputs, 1), torch.cat(labels, 1), torch.cat(rates, 1))

    def _lessons(self, examples: Synthetic) -> list[Synthetic]:
        """What each step learns from."""
        axis = examples.rates.ndim - 1
        parts = [torch.split(one, self._at_once, axis) for one in examples]
        return [Synthetic(*lesson) for lesson in zip(*parts, strict=True)]

    def _step(self, weights: Parameters, lesson: Synthetic) -> list[Tensor]:
        apart = lesson.rates.ndim == 2

        def step(weights: Parameters, x: Tensor, y: Tensor, rates: Tensor) -> list[Tensor]:
            slopes = grad(self._loss)(tuple(weights), x, y, rates)
            return [one - slope for one, slope in zip(weights, slopes, strict=True)]

        told: list[Tensor] = self._run("step", lesson, vmap(step) if apart else step, weights)
        return told

    def _back(
        self, weights: Parameters, lesson: Synthetic, ends: Parameters
    ) -> tuple[list[Tensor], Tensor, Tensor, Tensor]:
        def back(
            weights: Parameters, x: Tensor, y: Tensor, rates: Tensor, end: Parameters
        ) -> tuple[list[Tensor], Tensor, Tensor, Tensor]:
            def fast(
                weights: tuple[Tensor, ...], x: Tensor, y: Tensor, rates: Tensor
            ) -> Tensor:
                slopes = grad(self._loss)(weights, x, y, rates)
                return torch.stack(
                    [(one * slope).sum() for one, slope in zip(end, slopes, strict=True)]
                ).sum()

            bends, *slopes = grad(fast, argnums=(0, 1, 2, 3))(tuple(weights), x, y, rates)
            before = [one - bend for one, bend in zip(end, bends, strict=True)]
            after_x, after_y, after_rates = slopes
            return before, -after_x, -after_y, -after_rates

        own = 0 if lesson.rates.ndim == 2 else None
        told: tuple[list[Tensor], Tensor, Tensor, Tensor] = self._run(
            "back", lesson, vmap(back, in_dims=(own, own, own, own, 0)), weights, ends
        )
        return told

    # Any: see `_recorded`.
    def _run(
        self,
        name: str,
        lesson: Synthetic,
        what: Callable[..., Any],
        weights: Parameters,
        *ends: Parameters,
    ) -> Any:
        """Do it as it was recorded; the first time, record it."""
        given = weights, *lesson, *ends
        # A shared set has no members of its own: then the ends tell how many there are.
        members = len(ends[0][0]) if ends else 0
        key = name, members, *lesson.rates.shape
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
