"""The contract of an algorithm: how clients train, and what the server makes of updates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar, Literal, final

from torch import nn

from overheard.core.defense import Defense
from overheard.core.messages import Update, Weights
from overheard.core.parties import Party
from overheard.core.recipe import Recipe
from overheard.core.seeds import Seed
from overheard.core.settings import Settings
from overheard.core.view import View

MeanKind = Literal["examples", "equal"]
"""How updates are weighted in a mean: by their numbers of examples, or all alike."""

NOTHING: Mapping[str, Weights] = MappingProxyType({})


@final
@dataclass(frozen=True, slots=True)
class ReceivedUpdate:
    """An update that the server aggregates.

    Args:
        sender: the client that sent it.
        update: the update.
        copies: how often the client was sampled; above 1 only with replacement.
        delay: number of server steps since the broadcast that the client started from.

    """

    sender: Party
    update: Update
    copies: int = 1
    delay: int = 0


@final
@dataclass(frozen=True, slots=True, eq=False)
class ServerState:
    """What the server has at the start of a round.

    Args:
        weights: the global model.
        memory: further tensors that the algorithm keeps between rounds, by name. A control
            variate has the name of the party that holds it.
        clients: number of clients of the federation.

    """

    weights: Weights
    memory: Mapping[str, Weights] = field(default_factory=lambda: NOTHING)
    clients: int = 1


@final
@dataclass(frozen=True, slots=True)
class AsyncSchedule:
    """When clients start, and which server step uses their update.

    Args:
        starts: by round, the indices of the clients that start from its broadcast, in order.
        steps: by round and client that starts in it, the round whose server step uses the
            update; missing if the run ends before.

    """

    starts: Sequence[tuple[int, ...]]
    steps: Mapping[tuple[int, int], int]


class Algorithm(Settings):
    """How clients train, and how the server turns their updates into the next global model.

    A concrete algorithm is a final frozen dataclass: its fields are its settings. It overrides
    the hooks where it differs from FedAvg at server rate 1 (McMahan et al. 2017, Algorithm 1).
    The paragraph of its docstring that begins with "Leak:" says what more, or less, observers
    learn than under FedAvg.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    hidden_mean: ClassVar[str] = ""
    """Why broadcasts do not tell the mean update; "" = `mean_of_round` computes it."""
    has_memory: ClassVar[bool] = False
    """Whether the next state depends on more than the broadcast and updates of a round."""

    def conflict(self, recipe: Recipe, defenses: Sequence[Defense]) -> str:
        """Return why it cannot run with this recipe or these defenses; "" = it can."""
        return ""

    def local_recipe(self, recipe: Recipe) -> Recipe:
        """Return how clients train, from the recipe of the plan."""
        return recipe

    def local_tensors(self, model: nn.Module) -> frozenset[str]:
        """Return the names of the tensors that stay with each client, and are never sent."""
        return frozenset()

    def reported_steps(self, recipe: Recipe, steps: int) -> float | None:
        """Return what a client reports as the metric `LOCAL_STEPS`; None = it reports nothing.

        Args:
            recipe: how it trains.
            steps: its number of optimizer steps.

        """
        return None

    def factors(self, received: Sequence[ReceivedUpdate]) -> tuple[float, ...]:
        """Return the factor of each update in the sum that the server computes."""
        return mean_factors(received, "examples")

    def next_state(
        self,
        number: int,
        state: ServerState,
        delta: Weights,
        received: Sequence[ReceivedUpdate],
    ) -> ServerState:
        """Return the state at the start of the next round.

        It is a function of its arguments alone, so that a resumed run computes the same bits.
        It is not called for a round without updates, after which the state is unchanged.

        Args:
            number: number of the round.
            state: the state at the start of the round; not changed in place.
            delta: the sum of the updates by `factors`, after the defenses of aggregates.
            received: the updates; empty if the server reads only their aggregate.

        """
        return replace(state, weights=move(state.weights, delta))

    def sent_control(self, state: ServerState) -> Weights | None:
        """Return the control variate that is sent with the broadcast; None = none."""
        return None

    def correction(self, state: ServerState, party: Party) -> Weights | None:
        """Return what this client adds to its gradient in every step; None = nothing."""
        return None

    def control_change(
        self, state: ServerState, party: Party, delta: Weights, scale: float
    ) -> Weights | None:
        """Return the change of its control variate that a client sends; None = none.

        Args:
            state: the state at the start of the round.
            party: the client.
            delta: its local minus the global weights.
            scale: its number of steps times its learning rate.

        """
        return None

    def schedule(self, clients: int, rounds: int, seed: Seed) -> AsyncSchedule | None:
        """Return when each client starts and is aggregated; None = all wait for each other."""
        return None

    def plain_updates(self, view: View) -> View:
        """Return the view with the updates that clients would send without corrections.

        These have no control variate. It is called for attackers that know the algorithm and
        the senders of all updates.
        """
        return view

    @property
    def adds_mean(self) -> bool:
        """Whether the server adds the mean update itself to the global model."""
        return True

    def mean_of_round(self, change: Weights, before: Weights | None) -> Weights:
        """Return the mean update of a round, which whoever reads the broadcasts can compute.

        It is called only if `adds_mean` is false and `hidden_mean` is empty. Tensors are
        computed when they are accessed.

        Args:
            change: the change of the global model in this round.
            before: its change in the round before; None = this is the first round.

        """
        return change


LEAK = "Leak:"
"""How the paragraph on what an algorithm reveals begins."""

LOCAL_STEPS = "local_steps"
"""Name of the metric with what `Algorithm.reported_steps` returns."""


def mean_factors(received: Sequence[ReceivedUpdate], mean: MeanKind) -> tuple[float, ...]:
    """Return the factor of each update in the mean; they sum to 1.

    By examples, all factors are equal if any number of examples is hidden or all are 0. A
    client that was sampled several times counts as often.
    """
    if not received:
        raise ValueError("the mean of no updates is undefined: at least one client must reply")
    sizes = [1 if mean == "equal" else one.update.examples for one in received]
    known = [size * one.copies for size, one in zip(sizes, received, strict=True) if size]
    hidden = any(size is None for size in sizes)
    total = 0 if hidden else sum(known)
    if not total:
        copies = sum(one.copies for one in received)
        return tuple(one.copies / copies for one in received)
    return tuple(
        (size or 0) * one.copies / total for size, one in zip(sizes, received, strict=True)
    )


def move(weights: Weights, delta: Weights, rate: float = 1.0) -> Weights:
    """Return the weights plus `rate` times a delta, computed in float64."""
    return {
        name: (weight.double() + rate * delta[name].double()).to(weight.dtype)
        for name, weight in weights.items()
    }
