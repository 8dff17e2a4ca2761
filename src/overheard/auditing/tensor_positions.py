"""Names of tensors that were sent as a list, from their positions in a model."""

from collections.abc import Mapping

from torch import Tensor, nn

from overheard.archive.weights import Shapes, tensor_shapes
from overheard.auditing.tensor_selection import rename_tensors
from overheard.core.messages import Broadcast
from overheard.core.transcript import Transcript
from overheard.learning.sent_tensors import sent_tensors


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


def _is_sent(tensor: Tensor, shape: tuple[int, ...] | None) -> bool:
    """Return whether a tensor of this shape was sent; None = none was recorded.

    Tensors that are no floating-point numbers are not recorded.
    """
    return tuple(tensor.shape) == shape or (shape is None and not tensor.is_floating_point())
