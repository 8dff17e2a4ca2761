"""The layers that a network calls: some written out, and all recorded by their weights."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

ARGUMENTS: Mapping[Callable[..., Any], tuple[str, ...]] = {
    functional.linear: ("input", "weight", "bias"),
    functional.conv2d: (
        *("input", "weight", "bias", "stride", "padding", "dilation", "groups"),
    ),
    functional.embedding: (
        *("input", "weight", "padding_idx", "max_norm", "norm_type"),
        *("scale_grad_by_freq", "sparse"),
    ),
    functional.embedding_bag: (
        *("input", "weight", "offsets", "max_norm", "norm_type", "scale_grad_by_freq"),
        *("mode", "sparse", "per_sample_weights", "include_last_offset", "padding_idx"),
    ),
    torch.lstm: (
        *("input", "start", "weights", "has_biases", "layers", "dropout", "is_training"),
        *("is_bidirectional", "batch_first"),
    ),
    torch.gru: (
        *("input", "start", "weights", "has_biases", "layers", "dropout", "is_training"),
        *("is_bidirectional", "batch_first"),
    ),
}
"""Functions of layers that are written out or recorded, with the names of their arguments."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class LayerCall:
    """One use of a layer.

    Args:
        kind: of the layer; a table is an embedding.
        inputs: of the layer; rows of a table.
        weight: of the layer.
        bias: of the layer.
        settings: the other arguments by name.
        output: what the call gives.

    """

    kind: Literal["linear", "convolution", "table"]
    inputs: Tensor
    weight: Tensor
    bias: Tensor | None
    settings: Mapping[str, Any]
    output: Tensor

    def positions(self, inputs: Tensor, slopes: Tensor) -> tuple[Tensor, Tensor]:
        """Return inputs and slopes by position.

        Args:
            inputs: of this call, with an axis of examples before all others.
            slopes: gradient at the output, with the same axis.

        """
        examples = len(inputs)
        if self.kind == "convolution":
            patches = self._patches(inputs.flatten(0, -4))
            inputs, slopes = patches.transpose(1, 2), slopes.flatten(-2).transpose(-1, -2)
        slopes = slopes.reshape(examples, -1, slopes.shape[-1])
        if self.kind != "table":
            return inputs.reshape(examples, -1, inputs.shape[-1]), slopes
        rows = inputs.reshape(examples, -1)
        padding = self.settings.get("padding_idx")
        if padding is not None:
            slopes = slopes * (rows != padding % len(self.weight)).unsqueeze(2)
        return rows, slopes

    def _patches(self, images: Float[Tensor, "n c h w"]) -> Float[Tensor, "n inputs positions"]:
        """Return the pixels that each output pixel of a convolution reads."""
        height, width = self.weight.shape[2:]
        stride = self.settings.get("stride", 1)
        dilation = self.settings.get("dilation", 1)
        padding = self.settings.get("padding", 0)
        if isinstance(padding, str):
            by_axis = torch.nn.modules.utils._pair(dilation)
            sides = (
                []
                if padding == "valid"
                else [
                    side
                    for size, step in ((width, by_axis[1]), (height, by_axis[0]))
                    for side in (step * (size - 1) // 2, -(-step * (size - 1) // 2))
                ]
            )
            images, padding = functional.pad(images, sides), 0
        return functional.unfold(images, (height, width), dilation, padding, stride)


class LayersWrittenOut(TorchFunctionMode):
    """Runs an LSTM, a GRU and a bag of word vectors by linear layers and tables.

    `torch.func.vmap` can run those, and runs the layers themselves not at all or in a loop.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Collection[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run a function of torch."""
        if func in ARGUMENTS:
            named = dict(zip(ARGUMENTS[func], args, strict=False)) | dict(kwargs or {})
            output = self._of_layer(func, named)
            if output is not None:
                return output
        return self._of_other(func, args, kwargs or {})

    def _of_other(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """Return the output of a function that is not written out."""
        return func(*args, **kwargs)

    def _of_layer(self, func: Callable[..., Any], named: dict[str, Any]) -> Any:
        """Return the output of a layer, or None if it is not written out."""
        if not _is_known(func, named):
            return None
        if func in (torch.lstm, torch.gru):
            return self._recurrence(func, named)
        if func is functional.embedding_bag:
            return self._bag(named)
        if func is functional.embedding:
            return self._table(**named)
        return None

    def _linear(self, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return functional.linear(input, weight, bias)

    def _table(self, *, padding_idx: int | None = None, **named: Any) -> Tensor:
        """Look rows up; no gradient reaches that of the padding.

        `torch.func.vmap` would zero the gradient of the padding in the first table alone.
        """
        vectors: Tensor = functional.embedding(**named)
        if padding_idx is None:
            return vectors
        is_padding = named["input"] == padding_idx % len(named["weight"])
        return torch.where(is_padding.unsqueeze(-1), vectors.detach(), vectors)

    def _bag(self, named: Mapping[str, Any]) -> Tensor:
        """Sum or average the word vectors of each text; 0 for a text without words."""
        rows, padding = named["input"], named.get("padding_idx")
        vectors = self._table(input=rows, weight=named["weight"], padding_idx=padding)
        shares = torch.ones_like(rows, dtype=vectors.dtype)
        if padding is not None:
            shares = (rows != padding % len(named["weight"])).to(vectors.dtype)
        if named.get("mode", "mean") == "mean":
            shares = shares / shares.sum(1, keepdim=True).clamp(min=1)
        return torch.bmm(shares.unsqueeze(1), vectors).squeeze(1)

    def _recurrence(
        self, func: Callable[..., Any], named: Mapping[str, Any]
    ) -> tuple[Tensor, ...]:
        """Run an LSTM or a GRU step by step, by PyTorch's equations."""
        is_lstm, weights = func is torch.lstm, named["weights"]
        inputs = named["input"] if named["batch_first"] else named["input"].transpose(0, 1)
        starts = named["start"] if is_lstm else (named["start"],)
        each = 4 if named["has_biases"] else 2
        directions = 2 if named["is_bidirectional"] else 1
        ends = []
        for layer in range(named["layers"]):
            outputs = []
            for place in range(layer * directions, (layer + 1) * directions):
                of_inputs, of_states, *biases = weights[place * each : (place + 1) * each]
                first, second = biases or (None, None)
                given = self._linear(inputs, of_inputs, first).unbind(1)
                is_backward = place % directions == 1
                state = tuple(one[place] for one in starts)
                hidden = []
                for now in reversed(given) if is_backward else given:
                    recurrent = self._linear(state[0], of_states, second)
                    state = (_lstm_step if is_lstm else _gru_step)(now, recurrent, state)
                    hidden.append(state[0])
                ends.append(state)
                outputs.append(torch.stack(hidden[::-1] if is_backward else hidden, 1))
            inputs = torch.cat(outputs, 2)
        whole = inputs if named["batch_first"] else inputs.transpose(0, 1)
        return (whole, *(torch.stack(one) for one in zip(*ends, strict=True)))


@final
class CallRecorder(LayersWrittenOut):
    """Records the uses of weights in linear layers, 2-d convolutions and embeddings.

    Those of layers that are written out are recorded too. `calls` has the calls of recorded
    weights in order; `others` has the ids of the watched tensors that something else read.
    """

    def __init__(self, watched: Collection[int], offsets: Sequence[Tensor] = ()) -> None:
        """Watch for tensors.

        Args:
            watched: their ids.
            offsets: added to the outputs of `calls`, in order; none = as if all were 0.

        """
        super().__init__()
        self._watched, self._offsets = watched, offsets
        self.calls: list[LayerCall] = []
        self.others = set[int]()

    def _of_other(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        output = func(*args, **kwargs)
        read = [id(one) for one in _tensors_in((*args, *kwargs.values()))]
        if any(id_ in self._watched for id_ in read) and any(
            one.requires_grad for one in _tensors_in((output,))
        ):
            self.others.update(read)
        return output

    def _of_layer(self, func: Callable[..., Any], named: dict[str, Any]) -> Any:
        """Return the output of a layer, or None if it is not run by recorded layers."""
        if not _is_known(func, named):
            return None
        if func is functional.conv2d:
            return self._recorded("convolution", functional.conv2d(**named), named)
        if func is functional.linear:
            return self._linear(**named)
        return super()._of_layer(func, named)

    def _linear(self, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        output = functional.linear(input, weight, bias)
        return self._recorded(
            "linear", output, {"input": input, "weight": weight, "bias": bias}
        )

    def _table(self, **named: Any) -> Tensor:
        return self._recorded("table", functional.embedding(**named), named)

    def _recorded(
        self,
        kind: Literal["linear", "convolution", "table"],
        output: Tensor,
        named: Mapping[str, Any],
    ) -> Tensor:
        weight, bias = named["weight"], named.get("bias")
        if id(weight) not in self._watched:
            self.others.add(id(bias))
            return output
        self.calls.append(LayerCall(kind, named["input"], weight, bias, named, output))
        if self._offsets:
            return output + self._offsets[len(self.calls) - 1]
        return output.clone()  # the network may work in place, but `calls` must stay


def _lstm_step(
    given: Tensor, recurrent: Tensor, state: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    taken, kept, written, shown = (given + recurrent).chunk(4, -1)
    cell = kept.sigmoid() * state[1] + taken.sigmoid() * written.tanh()
    return shown.sigmoid() * cell.tanh(), cell


def _gru_step(
    given: Tensor, recurrent: Tensor, state: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    (reset, kept, new), of_states = given.chunk(3, -1), recurrent.chunk(3, -1)
    share = (kept + of_states[1]).sigmoid()
    new = (new + (reset + of_states[0]).sigmoid() * of_states[2]).tanh()
    return ((1 - share) * new + share * state[0],)


def _is_known(func: Callable[..., Any], named: Mapping[str, Any]) -> bool:
    """Return whether a call has no argument that `LayersWrittenOut` does not know."""
    if func is functional.conv2d:
        return named.get("groups", 1) == 1 and bool(named["input"].dim() == 4)
    if func in (functional.embedding, functional.embedding_bag):
        others = ("max_norm", "offsets", "per_sample_weights")
        is_plain = all(named.get(one) is None for one in others)
        is_bag = func is functional.embedding_bag
        is_row = not is_bag or (named["input"].dim() == 2 and named.get("mode") != "max")
        return is_plain and is_row and not named.get("scale_grad_by_freq")
    if func in (torch.lstm, torch.gru):
        # The arguments of packed texts are others, and a projection has a further weight.
        start, weights = named["start"], named["weights"]
        if isinstance(start, Tensor) == (func is torch.lstm) or not isinstance(weights, list):
            return False
        count = named["layers"] * (2 if named["is_bidirectional"] else 1)
        has_dropout = named["dropout"] > 0 and named["is_training"]
        return len(weights) == count * (4 if named["has_biases"] else 2) and not has_dropout
    return True


def _tensors_in(values: Sequence[Any]) -> list[Tensor]:
    """Return the tensors among these values and in their sequences."""
    found = []
    for one in values:
        if isinstance(one, Tensor):
            found.append(one)
        elif isinstance(one, (list, tuple)):
            found += _tensors_in(one)
    return found
