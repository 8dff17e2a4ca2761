"""What can be told of a network by looking at its modules."""

from torch import nn

DROPOUTS = (
    nn.Dropout,
    nn.Dropout1d,
    nn.Dropout2d,
    nn.Dropout3d,
    nn.AlphaDropout,
    nn.FeatureAlphaDropout,
)

BENDS = (nn.ReLU, nn.LeakyReLU, nn.Tanh)
"""Functions of single numbers whose slope can be told from what they give."""


def draws_at_random(model: nn.Module) -> bool:
    """True if a forward pass in training draws random numbers."""
    return any(isinstance(module, DROPOUTS) for module in model.modules())


def embeds_tokens(model: nn.Module) -> bool:
    """True if the network looks its inputs up in a table."""
    return any(
        isinstance(module, (nn.Embedding, nn.EmbeddingBag)) for module in model.modules()
    )


def is_recurrent(model: nn.Module) -> bool:
    """True if the network has a recurrent layer of torch's, which `vmap` cannot run."""
    return any(isinstance(module, nn.RNNBase) for module in model.modules())


def is_chain_of_linear(model: nn.Module) -> bool:
    """True for a plain sequence of a flatten, linear layers and functions of single numbers."""
    if type(model) is not nn.Sequential:
        return False
    layers = list(model)
    if layers and _flattens(layers[0]):
        layers = layers[1:]
    return (
        bool(layers)
        and type(layers[0]) is nn.Linear
        # Exactly: a kind of linear layer, such as one with dropout, does more than we know of.
        and all(type(layer) is nn.Linear or isinstance(layer, BENDS) for layer in layers)
    )


def _flattens(layer: nn.Module) -> bool:
    return isinstance(layer, nn.Flatten) and (layer.start_dim, layer.end_dim) == (1, -1)
