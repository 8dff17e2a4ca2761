"""Names of tensors that were sent as a list, from their positions in a model."""

from collections.abc import Mapping

from torch import Tensor, nn

Shape = tuple[int, ...]


def names_by_position(model: nn.Module, sent: Mapping[str, Shape]) -> dict[str, str]:
    """Return the name in the model for each tensor that is named by its position in a list.

    The list is that of the model's `state_dict`, or else that of its parameters, as far as the
    shapes agree. Tensors beyond the model keep their position, such as control variates.

    Args:
        model: the model whose tensors were sent.
        sent: shape of each tensor by name; positions are "0", "1", ...

    Returns:
        For each position its name; empty if a tensor has a name, or if no list fits.

    """
    if not sent or not all(name.isdecimal() for name in sent):
        return {}
    for tensors in (model.state_dict(), dict(model.named_parameters())):
        places = {str(place): name for place, name in enumerate(tensors)}
        if all(_is_sent(tensors[name], sent.get(place)) for place, name in places.items()):
            return {place: name for place, name in places.items() if place in sent}
    return {}


def _is_sent(tensor: Tensor, shape: Shape | None) -> bool:
    """Return whether a tensor of this shape was sent; None = none was recorded.

    Tensors that are no floating-point numbers are not recorded.
    """
    return tuple(tensor.shape) == shape or (shape is None and not tensor.is_floating_point())
