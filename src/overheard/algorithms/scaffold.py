"""SCAFFOLD: control variates correct the drift of clients, and travel beside the weights."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar, final

from annotated_types import Gt
from torch import Tensor

from overheard.core.algorithm.algorithm import (
    Algorithm,
    ReceivedUpdate,
    ServerState,
    mean_factors,
    move,
)
from overheard.core.algorithm.lazy_weights import LinearCombination, scaled
from overheard.core.defense import Defense
from overheard.core.messages import Broadcast, Message, Update, Weights
from overheard.core.parties import SERVER, Party
from overheard.core.recipe import Recipe
from overheard.core.view import View


@final
@dataclass(frozen=True)
class Scaffold(Algorithm):
    """Clients add the server's control variate c minus their own c_i to each gradient.

    Karimireddy et al. 2020, Algorithm 1 with option II. A client starts from the broadcast x
    and takes K steps of rate r to y. Its new control variate is c_i - c + (x - y) / (K r): the
    mean of its gradients. It sends y - x and the change of c_i. The server adds `rate` times
    the plain mean of y - x to x, and the sum of the changes, divided by the number of all
    clients, to c. All control variates begin at 0.

    Leak: more than FedAvg to the server. The two messages of a client differ by the factor K r,
    so that its number of local steps is revealed also where its number of examples is hidden.
    The sum of its changes is its mean gradient of the round, without the correction: attackers
    that know the recipe read it in place of the update. Behind pseudonyms that last one round
    they simulate the control variates of known users and of virtual clients. Broadcasts show
    clients c, the mean gradient of all clients in their last rounds. Defenses that clip, noise
    or mask updates do not cover control variates, and are refused.

    Args:
        rate: the server's learning rate.

    """

    name: ClassVar[str] = "scaffold"
    source: ClassVar[str] = "Karimireddy et al. 2020 (arXiv 1910.06378), Algorithm 1, option II"
    has_memory: ClassVar[bool] = True

    rate: Annotated[float, Gt(0)] = 1.0

    @property
    def adds_mean(self) -> bool:
        """Return whether the rate is 1."""
        return self.rate == 1

    def conflict(self, recipe: Recipe, defenses: Sequence[Defense]) -> str:
        """Return why it cannot run: other optimizers, or defenses of updates alone."""
        if recipe.optimizer != "sgd" or recipe.momentum:
            return "scaffold corrects plain SGD: set optimizer = 'sgd' and momentum = 0"
        for defense in defenses:
            kind = type(defense)
            changes = (
                kind.on_update is not Defense.on_update,
                kind.on_aggregate is not Defense.on_aggregate,
            )
            if defense.masks_updates or any(changes):
                return (
                    f"scaffold sends control variates beside updates, which {defense.name} "
                    "does not protect: choose another algorithm or defense"
                )
        return ""

    def factors(self, received: Sequence[ReceivedUpdate]) -> tuple[float, ...]:
        """Return equal factors, as in the paper."""
        return mean_factors(received, "equal")

    def next_state(
        self,
        number: int,
        state: ServerState,
        delta: Weights,
        received: Sequence[ReceivedUpdate],
    ) -> ServerState:
        """Return the state with the new model, and all control variates after the round."""
        controls = dict(state.memory)
        for one in received:
            change = one.update.control
            if change is not None:
                # Of a client that was drawn twice there is one control variate.
                controls[one.sender] = _add(controls.get(one.sender), change, 1.0)
                controls[SERVER] = _add(controls.get(SERVER), change, 1 / state.clients)
        return replace(state, weights=move(state.weights, delta, self.rate), memory=controls)

    def sent_control(self, state: ServerState) -> Weights:
        """Return c."""
        return _control(state, SERVER)

    def correction(self, state: ServerState, party: Party) -> Weights:
        """Return c - c_i."""
        own, shared = _control(state, party), _control(state, SERVER)
        return {name: shared[name] - own[name] for name in own}

    def control_change(
        self, state: ServerState, party: Party, delta: Weights, scale: float
    ) -> Weights:
        """Return (x - y) / (K r) - c."""
        shared = _control(state, SERVER)
        return {
            name: (-part.double() / scale - shared[name].double()).to(part.dtype)
            for name, part in delta.items()
        }

    def mean_of_round(self, change: Weights, before: Weights | None) -> Weights:
        """Return the change of the global model divided by the rate."""
        return scaled(change, 1 / self.rate)

    def plain_updates(self, view: View) -> View:
        """Return the view with -K r times each client's mean gradient as its update.

        Control variates are followed from the first round, so the observers must read all
        updates of a client, as the server does. Otherwise updates stay as they were sent, and
        so do the observers' own.
        """
        shared = {
            message.round: message.body.control
            for message in view.messages
            if isinstance(message.body, Broadcast)
        }
        if 0 not in shared:
            return view
        changes = dict[Party, list[Weights]]()
        messages = list[Message]()
        for message in view.messages:
            body, control = message.body, shared.get(message.round)
            if isinstance(body, Update) and message.sender not in view.observers:
                if body.control is not None:
                    changes.setdefault(message.sender, []).append(body.control)
                seen = tuple(changes.get(message.sender, ()))
                if control is not None and body.control is not None:
                    plain = _PlainUpdate(body.delta, control, seen)
                    body = replace(body, delta=plain, control=None)
            messages.append(replace(message, body=body))
        return replace(view, messages=tuple(messages))


def _control(state: ServerState, party: Party) -> Weights:
    """Return the control variate of a party; all begin at 0."""
    known = state.memory.get(party)
    return scaled(state.weights, 0.0) if known is None else known


def _add(control: Weights | None, change: Weights, factor: float) -> Weights:
    parts = (change,) if control is None else (change, control)
    total = LinearCombination(parts, (factor, 1.0)[: len(parts)])
    return {name: total[name] for name in total}


@final
@dataclass(frozen=True, eq=False)
class _PlainUpdate(Mapping[str, Tensor]):
    """-K r times the mean gradient of a client, computed per tensor on access.

    Args:
        delta: y - x.
        shared: c.
        changes: all changes of c_i up to this round; their sum is the mean gradient.

    """

    delta: Weights
    shared: Weights
    changes: tuple[Weights, ...]

    @cached_property
    def scale(self) -> float:
        """K r, by least squares from y - x = -K r (c + change of c_i)."""
        product, square = 0.0, 0.0
        for name in self.delta:
            gradient = self.shared[name].double() + self.changes[-1][name].double()
            product -= float((self.delta[name].double() * gradient).sum())
            square += float(gradient.square().sum())
        return product / square if square else 0.0

    def __getitem__(self, name: str) -> Tensor:
        """Compute one tensor."""
        return LinearCombination(self.changes, (-self.scale,) * len(self.changes))[name]

    def __contains__(self, name: object) -> bool:
        """Return whether there is such a tensor; computes nothing."""
        return name in self.delta

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names in the order of the update."""
        return iter(self.delta)

    def __len__(self) -> int:
        """Return the number of tensors."""
        return len(self.delta)
