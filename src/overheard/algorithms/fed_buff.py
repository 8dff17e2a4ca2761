"""FedBuff: the server steps whenever enough updates have arrived, and waits for nobody."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Annotated, ClassVar, final

import torch
from annotated_types import Gt

from overheard.core.algorithm.algorithm import (
    Algorithm,
    AsyncSchedule,
    ReceivedUpdate,
    ServerState,
    mean_factors,
    move,
)
from overheard.core.defense import Defense
from overheard.core.messages import Weights
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.settings import Positive


@final
@dataclass(frozen=True)
class FedBuff(Algorithm):
    """Clients train at their own pace; the server steps after every `buffer` updates.

    Nguyen et al. 2022, Algorithm 1. `concurrency` clients train at any time. Whenever the
    server has received `buffer` updates, it adds `rate` times their mean to the global model.
    As many other clients then start from the new model. With `discount`, an update that is t
    steps late counts 1 / sqrt(1 + t) (Section 5). Which of the running clients finish next is
    drawn evenly.

    A round of the transcript is one version of the global model. It holds the updates of the
    clients that start from this version, also if the server uses them later. Updates that a
    run ends without are not sent.

    Leak: as much as FedAvg to the server, which knows the version that each client started
    from. It learns more of time: how late an update is tells the speed of a device. Clients
    learn less: a change of the model mixes updates from several versions, so that attacks of
    clients on the mean update are refused.

    Args:
        buffer: number of updates per server step.
        concurrency: number of clients that train at the same time.
        rate: the server's learning rate.
        discount: whether late updates count less.

    """

    name: ClassVar[str] = "fed_buff"
    source: ClassVar[str] = "Nguyen et al. 2022 (arXiv 2106.06639), Algorithm 1"
    hidden_mean: ClassVar[str] = (
        "the mean update of a round: with asynchronous clients a change of the global model "
        "mixes updates that started from several models"
    )

    buffer: Positive = 3
    concurrency: Positive = 6
    rate: Annotated[float, Gt(0)] = 1.0
    discount: bool = True

    def check_together(self) -> None:
        """Refuse a buffer that the clients at work cannot fill."""
        if self.buffer > self.concurrency:
            raise ValueError(
                f"buffer must be at most concurrency, {self.concurrency}, got {self.buffer}"
            )

    @property
    def adds_mean(self) -> bool:
        """Return false: the server adds updates of several rounds."""
        return False

    def conflict(self, recipe: Recipe, defenses: Sequence[Defense]) -> str:
        """Return why it cannot run: defenses that act on the aggregate of a round."""
        for defense in defenses:
            if defense.masks_updates or type(defense).on_aggregate is not Defense.on_aggregate:
                return (
                    "fed_buff aggregates updates of several rounds, for which "
                    f"{defense.name} is not made"
                )
        return ""

    def schedule(self, clients: int, rounds: int, seed: Seed) -> AsyncSchedule:
        """Return which clients start from each version, and which step uses their updates."""
        running = dict[int, int]()
        starts, steps = list[tuple[int, ...]](), dict[tuple[int, int], int]()
        for number in range(rounds):
            generator = seed.child(number).generator()
            idle = [index for index in range(clients) if index not in running]
            order = torch.randperm(len(idle), generator=generator).tolist()
            free = self.concurrency - len(running)
            starting = tuple(sorted(idle[place] for place in order[:free]))
            starts.append(starting)
            running |= dict.fromkeys(starting, number)
            finishing = torch.randperm(len(running), generator=generator)[: self.buffer]
            present = list(running)
            for place in finishing.tolist():
                index = present[place]
                steps[running.pop(index), index] = number
        return AsyncSchedule(starts, steps)

    def factors(self, received: Sequence[ReceivedUpdate]) -> tuple[float, ...]:
        """Return equal factors, each less if its update is late."""
        return tuple(
            factor / sqrt(1 + one.delay) if self.discount else factor
            for factor, one in zip(mean_factors(received, "equal"), received, strict=True)
        )

    def next_state(
        self,
        number: int,
        state: ServerState,
        delta: Weights,
        received: Sequence[ReceivedUpdate],
    ) -> ServerState:
        """Return the state after one step along the sum of the buffer."""
        return replace(state, weights=move(state.weights, delta, self.rate))
