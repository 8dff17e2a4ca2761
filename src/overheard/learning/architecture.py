"""Properties of a network that its modules show."""

from collections.abc import Sequence
from itertools import pairwise

from torch import nn

from overheard.learning.custom_networks.single_output import has_single_logit
from overheard.learning.last_layer import DroppedLinear

DROPOUT_LAYERS = (
    nn.Dropout,
    nn.Dropout1d,
    nn.Dropout2d,
    nn.Dropout3d,
    nn.AlphaDropout,
    nn.FeatureAlphaDropout,
)

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)

LINEAR_LAYERS = (nn.Linear, DroppedLinear)

ELEMENTWISE_ACTIVATIONS = (nn.ReLU, nn.LeakyReLU, nn.Tanh)
"""Elementwise activations whose derivative follows from their output."""


def has_dropout(model: nn.Module) -> bool:
    """Return whether a forward pass in training draws random numbers."""
    return any(isinstance(module, DROPOUT_LAYERS) for module in model.modules())


def has_embedding(model: nn.Module) -> bool:
    """Return whether the network has an embedding layer."""
    return any(
        isinstance(module, (nn.Embedding, nn.EmbeddingBag)) for module in model.modules()
    )


def has_batch_norm(model: nn.Module) -> bool:
    """Return whether training normalises an example by the other examples of its batch."""
    return any(isinstance(module, BATCH_NORMS) for module in model.modules())


def needs_two_examples(model: nn.Module) -> bool:
    """Return whether the network cannot train on a batch of one example.

    A batch norm of images can, as it has one number per pixel.
    """
    return any(isinstance(module, nn.BatchNorm1d) for module in model.modules())


def is_recurrent(model: nn.Module) -> bool:
    """Return whether the network has a recurrent layer."""
    return any(isinstance(module, nn.RNNBase) for module in model.modules())


def can_write_layers_out(model: nn.Module) -> bool:
    """Return whether `LayersWrittenOut` knows the recurrent layers and tables of the network.

    `torch.func.vmap` runs no others, or wrongly.
    """
    return all(_can_be_written_out(module) for module in model.modules())


def _can_be_written_out(module: nn.Module) -> bool:
    if isinstance(module, nn.RNNBase):
        is_known = isinstance(module, (nn.LSTM, nn.GRU))
        return is_known and not module.proj_size and not module.dropout
    if isinstance(module, (nn.Embedding, nn.EmbeddingBag)):
        is_plain = module.max_norm is None and not module.scale_grad_by_freq
        return is_plain and getattr(module, "mode", "mean") != "max"
    return True


def is_plain_mlp(model: nn.Module) -> bool:
    """Return whether the network is a sequence of a flatten, linear layers and activations.

    All its parameters are trainable.
    """
    return is_mlp_with_dropout(model) and not has_dropout(model)


def is_mlp_with_dropout(model: nn.Module) -> bool:
    """Return whether the network is a plain MLP, or one with dropout between its layers."""
    if type(model) is not nn.Sequential or has_single_logit(model):
        return False
    layers = list(model)
    if layers and _is_full_flatten(layers[0]):
        layers = layers[1:]
    while layers and type(layers[0]) is nn.Dropout:
        layers = layers[1:]
    return (
        bool(layers)
        and type(layers[0]) in LINEAR_LAYERS
        and all(parameter.requires_grad for parameter in model.parameters())
        and not _uses_a_part_twice(model)
        # No subclasses, as they may compute something else.
        and all(
            type(layer) in (*LINEAR_LAYERS, nn.Dropout, *ELEMENTWISE_ACTIVATIONS)
            for layer in layers
        )
        and _outputs_give_derivatives(layers)
    )


def _uses_a_part_twice(model: nn.Sequential) -> bool:
    """Return whether a layer or a parameter stands at two places; torch names it once."""
    parameters = [one for layer in model for one in layer.parameters()]
    return len(set(model)) < len(model) or len(set(parameters)) < len(parameters)


def _outputs_give_derivatives(layers: Sequence[nn.Module]) -> bool:
    """Return whether the derivative of each activation follows from its stored output.

    An activation right after another would overwrite that output. A leaky ReLU with a negative
    slope has two inputs for one output.
    """
    kept = [type(layer) for layer in layers if type(layer) is not nn.Dropout]
    return not any(
        one in ELEMENTWISE_ACTIVATIONS and other in ELEMENTWISE_ACTIVATIONS
        for one, other in pairwise(kept)
    ) and not any(type(one) is nn.LeakyReLU and one.negative_slope < 0 for one in layers)


def _is_full_flatten(layer: nn.Module) -> bool:
    return isinstance(layer, nn.Flatten) and (layer.start_dim, layer.end_dim) == (1, -1)
