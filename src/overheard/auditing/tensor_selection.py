"""Messages with a selection of their tensors."""

from collections.abc import Iterator, Mapping
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
    body = message.body
    match body:
        case Broadcast():
            return replace(message, body=replace(body, weights=_select(body.weights, names)))
        case Update() | Aggregate():
            return replace(message, body=replace(body, delta=_select(body.delta, names)))
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
