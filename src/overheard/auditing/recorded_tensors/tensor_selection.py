"""Messages with a selection of their tensors, or with other names for them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import final

from torch import Tensor, nn

from overheard.archive.weights import Shapes, tensor_shapes
from overheard.core.messages import Aggregate, Broadcast, Message, Update, Weights
from overheard.core.transcript import Transcript
from overheard.learning.sent_tensors import sent_tensors


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


def name_positions(whole: Transcript, model: nn.Module) -> Transcript:
    """Return the transcript with names for tensors that were sent as a list, if they fit."""
    models = (m.body.weights for m in whole.messages if isinstance(m.body, Broadcast))
    names = names_by_position(model, tensor_shapes(next(models, {})))
    if not names:
        return whole
    return Transcript(tuple(rename_tensors(message, names) for message in whole.messages))


def names_by_position(model: nn.Module, sent: Shapes) -> dict[str, str]:
    """Return the name in the model for each tensor that is named by its position in a list.

    The list is that of the model's `state_dict`, or else of its parameters, or else of the
    tensors that it sends, as far as the shapes agree. Tensors beyond the model keep their
    position, such as control variates.

    Args:
        model: the model whose tensors were sent.
        sent: shape of each tensor by name; positions are "0", "1", ...

    Returns:
        For each position its name; empty if a tensor has a name, or if no list fits.

    """
    if not sent or not all(name.isdecimal() for name in sent):
        return {}
    lists: tuple[Mapping[str, Tensor], ...] = (
        model.state_dict(),
        dict(model.named_parameters()),
        sent_tensors(model),
    )
    for tensors in lists:
        places = {str(place): name for place, name in enumerate(tensors)}
        if all(_is_sent(tensors[name], sent.get(place)) for place, name in places.items()):
            return {place: name for place, name in places.items() if place in sent}
    return {}


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


def _select(weights: Weights, names: Mapping[str, str]) -> Weights:
    is_same = tuple(weights) == tuple(names) == tuple(names.values())
    return weights if is_same else _SelectedTensors(weights, names)


@final
@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
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


def _is_sent(tensor: Tensor, shape: tuple[int, ...] | None) -> bool:
    """Return whether a tensor of this shape was sent; None = none was recorded.

    Tensors that are no floating-point numbers are not recorded.
    """
    return tuple(tensor.shape) == shape or (shape is None and not tensor.is_floating_point())
