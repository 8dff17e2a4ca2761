"""Messages with a selection of their tensors, under other names and with turned axes."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import final

from torch import Tensor

from overheard.auditing.recorded_tensors.network_tensors import Axes
from overheard.core.messages import Aggregate, Broadcast, Message, Update, Weights

AS_RECORDED: Mapping[str, Axes] = MappingProxyType({})


def select_tensors(
    message: Message, names: Mapping[str, str], axes: Mapping[str, Axes] = AS_RECORDED
) -> Message:
    """Return the message with only these tensors of its weights, in this order.

    No tensor is read. A message with exactly these tensors is returned unchanged.

    Args:
        message: the message.
        names: by the name of each tensor in the result, its name in the message.
        axes: by the name in the result, the new order of the axes of a tensor.

    """
    return _change_weights(message, lambda weights: _select(weights, names, axes))


def _change_weights(message: Message, change: Callable[[Weights], Weights]) -> Message:
    body = message.body
    match body:
        case Broadcast():
            control = None if body.control is None else change(body.control)
            weights = change(body.weights)
            return replace(message, body=replace(body, weights=weights, control=control))
        case Update():
            control = None if body.control is None else change(body.control)
            return replace(
                message, body=replace(body, delta=change(body.delta), control=control)
            )
        case Aggregate():
            return replace(message, body=replace(body, delta=change(body.delta)))
        case _:
            return message


def _select(weights: Weights, names: Mapping[str, str], axes: Mapping[str, Axes]) -> Weights:
    is_same = not axes and tuple(weights) == tuple(names) == tuple(names.values())
    return weights if is_same else _SelectedTensors(weights, names, axes)


@final
@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class _SelectedTensors(Mapping[str, Tensor]):
    """Some tensors of a model, each read on access."""

    weights: Weights
    names: Mapping[str, str]
    axes: Mapping[str, Axes]

    def __getitem__(self, name: str) -> Tensor:
        tensor = self.weights[self.names[name]]
        return tensor.permute(self.axes[name]).contiguous() if name in self.axes else tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)
