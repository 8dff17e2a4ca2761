"""Control variates as an observer reads them, and as it follows those of simulated clients."""

from collections.abc import Mapping

from overheard.core.algorithm.algorithm import ServerState
from overheard.core.algorithm.lazy_weights import LinearCombination
from overheard.core.messages import Broadcast, Update, Weights
from overheard.core.parties import SERVER
from overheard.core.view import View


def corrected_history(view: View) -> dict[int, Broadcast]:
    """Return all broadcasts by round, if the updates of others were corrected by variates.

    A corrected update depends on what its sender trained on in earlier rounds. An observer can
    simulate that if it reads the broadcasts from the first round on. Otherwise, and for updates
    without a control variate, nothing is returned. `Algorithm.plain_updates` removes both the
    correction and the variate.
    """
    is_corrected = any(
        isinstance(message.body, Update)
        and message.body.control is not None
        and message.sender not in view.observers
        for message in view.messages
    )
    broadcasts = {
        message.round: message.body
        for message in view.messages
        if isinstance(message.body, Broadcast)
    }
    has_all = all(one.control is not None for one in broadcasts.values())
    return broadcasts if is_corrected and has_all and 0 in broadcasts else {}


def state_with_variates(broadcast: Broadcast, own: Mapping[str, Weights]) -> ServerState:
    """Return the part of the server's state that corrections depend on.

    Args:
        broadcast: the broadcast of the round, with the server's control variate.
        own: the control variates of clients at the start of the round, by party; others are
            at 0.

    """
    memory = {**own}
    if broadcast.control is not None:
        memory[SERVER] = broadcast.control
    return ServerState(broadcast.weights, memory)


def add_change(variate: Weights | None, change: Weights) -> Weights:
    """Return a control variate after a change, computed in float64; None = it is at 0."""
    if variate is None:
        return change
    return {
        name: (variate[name].double() + part.double()).to(part.dtype)
        for name, part in change.items()
    }


def without_correction(delta: Weights, correction: Weights, scale: float) -> Weights:
    """Return an update of plain SGD less what a correction of the gradients added to it.

    Args:
        delta: local minus global weights.
        correction: what was added to the gradient in every step.
        scale: the number of steps times the learning rate.

    """
    return LinearCombination((delta, correction), (1.0, scale))
