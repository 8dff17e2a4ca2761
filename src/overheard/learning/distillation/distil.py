"""Local distillation: each member changes the shared synthetic examples after its own data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from overheard.core.defense import BuildModel
from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.messages import Weights
from overheard.core.seeds import Seed
from overheard.learning.architecture import draws_at_random, embeds_tokens, is_recurrent
from overheard.learning.batches import epoch_order
from overheard.learning.cohort import Member
from overheard.learning.distillation.flip import Flip
from overheard.learning.distillation.moments import Moments, step
from overheard.learning.distillation.synthetic import Synthetic
from overheard.learning.distillation.unroll import Parameters, Unroll
from overheard.learning.initial import fresh


@final
@dataclass(frozen=True, slots=True, eq=False)
class Distilled:
    """What the members of a round came to.

    Args:
        examples: of each member.
        losses: of each member's own examples before its last step, by the mean.
        moments: what is remembered of each for its next round.

    """

    examples: Synthetic
    losses: Float[Tensor, " members"]
    moments: Moments


@final
class Distiller:
    """A network that distillation looks through.

    Args:
        build_model: gives it; its own weights are not used.
        start: weights before each training on synthetic examples.
        device: where to compute.

    Raises:
        PlanError: if nothing can be distilled through such a network.

    """

    def __init__(
        self, build_model: BuildModel, start: Weights, device: torch.device | str = "cpu"
    ) -> None:
        model = fresh(build_model, Seed(0)).to(device)
        if embeds_tokens(model) or is_recurrent(model) or draws_at_random(model):
            raise PlanError(
                "distilled data are numbers that a smooth network without dropout is trained "
                "on: take images or tables, and a model such as conv_net or mlp"
            )
        self._names = [name for name, _ in model.named_parameters()]
        self._start = [start[name].to(device) for name in self._names]
        self._model = model.to(self._start[0].dtype)
        self._device = device
        # Operations are recorded for a number of members.
        self._unrolls = dict[int, Unroll]()

    def train(self, examples: Synthetic) -> list[Weights]:
        """The weights after one pass over each member's set (equation (5)), on the cpu."""
        members = len(examples.rates)
        told = self._unroll(members).train(
            self._start, examples.map(lambda one: one.to(self._device))
        )
        return [
            dict(zip(self._names, (one[number].cpu() for one in told), strict=True))
            for number in range(members)
        ]

    def distil(
        self,
        shared: Synthetic,
        pool: Examples,
        members: Sequence[Member],
        moments: Moments,
        how: Flip,
        *,
        round: int,
        scale: float,
        seed: Seed,
    ) -> Distilled:
        """Distil one round: every member goes on from the same set.

        Args:
            shared: what all start from.
            pool: examples of all members together.
            members: who distils, each from its rows of the pool.
            moments: what is remembered of each.
            how: how many steps, and which.
            round: which one it is; on it the batches hang.
            scale: by what the rates of the distillation are multiplied.
            seed: root of the batches' draws.

        """
        unroll = self._unroll(len(members))
        examples = shared.map(lambda one: one.to(self._device))
        moments = moments.on(self._device)
        losses = torch.zeros(len(members))
        for number in range(how.steps):
            batches = [
                pool.take(_batch(one, how.batch, number, round, seed)) for one in members
            ]

            def after(weights: Parameters, batches: list[Examples] = batches) -> list[Tensor]:
                nonlocal losses
                slopes, losses = self._slopes(weights, batches)
                return slopes

            slopes = unroll.slopes(self._start, examples, after)
            if number == 0:
                examples = examples.map(
                    lambda one: one.expand(len(members), *one.shape).clone()
                )
            examples, moments = step(examples, slopes, moments, how, scale)
        return Distilled(examples.map(Tensor.cpu), losses, moments.on("cpu"))

    def _slopes(
        self, weights: Parameters, batches: Sequence[Examples]
    ) -> tuple[list[Tensor], Tensor]:
        """Slope and value of the mean loss of each member's batch, members first."""
        each, losses = [], []
        is_apart = weights[0].ndim > self._start[0].ndim
        for number, batch in enumerate(batches):
            own = [
                (one[number] if is_apart else one).detach().requires_grad_() for one in weights
            ]
            with torch.enable_grad():
                logits = functional_call(
                    self._model,
                    dict(zip(self._names, own, strict=True)),
                    (batch.inputs.to(self._device, own[0].dtype),),
                )
                loss = cross_entropy(logits, batch.labels.to(self._device))
                each.append(torch.autograd.grad(loss, own))
            losses.append(loss.detach().cpu())
        return [torch.stack(one) for one in zip(*each, strict=True)], torch.stack(losses)

    def _unroll(self, members: int) -> Unroll:
        if members not in self._unrolls:
            self._unrolls[members] = Unroll(self._model)
        return self._unrolls[members]


def _batch(member: Member, size: int, number: int, round: int, seed: Seed) -> Tensor:
    """The rows that a step of a round looks at: batches of an epoch follow each other."""
    whole = max(1, len(member.rows) // size)
    epoch, place = divmod(number, whole)
    order = epoch_order(seed, round, member.name, epoch, len(member.rows))
    return member.rows[order[place * size : (place + 1) * size]]
