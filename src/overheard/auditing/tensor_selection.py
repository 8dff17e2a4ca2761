"""Messages with a selection of their tensors."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import final

from torch import Tensor

from overheard.core.messages import Aggregate, Broadcast, Message, Update, Weights


def select_tensors(message: Message, names: tuple[str, ...]) -> Message:
    """Return the message with only these tensors of its weights, in this order.

    No tensor is read. A message with exactly these tensors is returned unchanged.
    """
    body = message.body
    match body:
        case Broadcast():
            control = None if body.control is None else _select(body.control, names)
            weights = _select(body.weights, names)
            return replace(message, body=replace(body, weights=weights, control=control))
        case Update():
            control = None if body.control is None else _select(body.control, names)
            delta = _select(body.delta, names)
            return replace(message, body=replace(body, delta=delta, control=control))
        case Aggregate():
            return replace(message, body=replace(body, delta=_select(body.delta, names)))
        case _:
            return message


def _select(weights: Weights, names: tuple[str, ...]) -> Weights:
    return weights if tuple(weights) == names else _SelectedTensors(weights, names)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _SelectedTensors(Mapping[str, Tensor]):
    """Some tensors of a model, each read on access."""

    weights: Weights
    names: tuple[str, ...]

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.names:
            raise KeyError(name)
        return self.weights[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)
