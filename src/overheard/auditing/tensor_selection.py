"""Messages with a selection of their tensors, or with other names for them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import final

from torch import Tensor

from overheard.core.messages import Aggregate, Broadcast, Message, Update, Weights


def select_tensors(message: Message, names: Mapping[str, str]) -> Message:
    """Return the message with only these tensors of its weights, in this order.

    No tensor is read. A message with exactly these tensors is returned unchanged.

    Args:
        message: the message.
        names: by the name of each tensor in the result, its name in the message.

    """
    return _change_weights(message, lambda weights: _select(weights, names))


def rename_tensors(message: Message, names: Mapping[str, str]) -> Message:
    """Return the message with other names for its tensors, in the same order; none is read.

    Args:
        message: the message.
        names: the new name for each name; tensors without one keep theirs.

    """
    return _change_weights(
        message,
        lambda weights: _select(weights, {names.get(name, name): name for name in weights}),
    )


def _change_weights(message: Message, change: Callable[[Weights], Weights]) -> Message:
    body = message.body
    match body:
        case Broadcast():
            return replace(message, body=replace(body, weights=change(body.weights)))
        case Update() | Aggregate():
            return replace(message, body=replace(body, delta=change(body.delta)))
        case _:
            return message


def _select(weights: Weights, names: Mapping[str, str]) -> Weights:
    is_same = tuple(weights) == tuple(names) == tuple(names.values())
    return weights if is_same else _SelectedTensors(weights, names)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _SelectedTensors(Mapping[str, Tensor]):
    """Some tensors of a model, each read on access."""

    weights: Weights
    names: Mapping[str, str]

    def __getitem__(self, name: str) -> Tensor:
        return self.weights[self.names[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)
