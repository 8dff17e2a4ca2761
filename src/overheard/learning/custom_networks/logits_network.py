"""Networks of other libraries as those that attacks read: one tensor in, logits out."""

import inspect
from collections.abc import Mapping
from typing import final

from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from overheard.core.task import Task

TOKENS = "input_ids"
"""How a network names the tokens that it takes, in Hugging Face's libraries."""

MASK = "attention_mask"
"""How it names the mask of those tokens that are no padding."""


@final
class LogitsNetwork(nn.Module):
    """A network that gets one tensor and returns logits alone.

    - Tokens are given as `input_ids`, with the `attention_mask` of those that are no padding,
      if the network takes these. A text of padding alone is read as it is.
    - Of an object with `logits`, such as Hugging Face's model outputs, and of a tuple, the
      logits are returned.
    - Of a language model, the output of a text is the mean of -log p over its tokens, each
      given those before it; its first token and padding do not count.

    Its tensors have the names that they have in `module`, after `module.`.

    Args:
        module: the network.
        padding: the token after the end of a text.
        is_language_model: whether each token is predicted from those before it.

    """

    def __init__(self, module: nn.Module, padding: int, *, is_language_model: bool) -> None:
        super().__init__()
        self.module = module
        self._padding = padding
        self._is_language_model = is_language_model
        names = forward_names(module)
        self._takes_tokens, self._takes_mask = TOKENS in names, MASK in names

    def forward(self, inputs: Shaped[Tensor, "examples ..."]) -> Tensor:
        """Return logits, or the loss of each text: (examples, outputs)."""
        if self._takes_tokens:
            arguments = {TOKENS: inputs}
            if self._takes_mask:
                arguments[MASK] = self._is_read(inputs).long()
            logits = logits_of(self.module(**arguments))
        else:
            logits = logits_of(self.module(inputs))
        return self._losses(logits, inputs) if self._is_language_model else logits

    def _is_read(self, tokens: Int[Tensor, "examples tokens"]) -> Bool[Tensor, "..."]:
        is_text = tokens != self._padding
        # Attention to nothing would not be a number.
        return is_text | ~is_text.any(1, keepdim=True)

    def _losses(
        self, logits: Float[Tensor, "examples places vocabulary"], tokens: Tensor
    ) -> Float[Tensor, "examples one"]:
        count = tokens.shape[1]
        # Virtual tokens of prompt tuning stand before those of the text.
        predicted = logits[:, -count:][:, :-1].log_softmax(-1)
        following = tokens[:, 1:]
        losses = -predicted.gather(2, following.unsqueeze(2)).squeeze(2)  # (examples, tokens)
        counts = self._is_read(tokens)[:, 1:].to(losses.dtype)
        return ((losses * counts).sum(1) / counts.sum(1).clamp(min=1)).unsqueeze(1)


def takes_tokens(network: nn.Module) -> bool:
    """Return whether a network takes `input_ids`."""
    return TOKENS in forward_names(network)


def as_logits_network(network: nn.Module, task: Task, padding: int | None) -> nn.Module:
    """Return a network that takes one tensor; a network that does so anyway is unchanged.

    Args:
        network: the network.
        task: the task.
        padding: the token after the end of a text; None = as the network's configuration says.

    """
    is_language_model = task.kind == "language_modeling"
    if not is_language_model and not (task.vocabulary is not None and takes_tokens(network)):
        return network
    token = padding_token(network) if padding is None else padding
    return LogitsNetwork(network, token, is_language_model=is_language_model)


def logits_of(outputs: object) -> Tensor:
    """Return the logits among the outputs of a network.

    Raises:
        TypeError: if there are none.

    """
    found = outputs
    if isinstance(outputs, Mapping):
        found = outputs.get("logits")
    elif isinstance(outputs, tuple | list) and outputs:
        found = outputs[0]
    if not isinstance(found, Tensor):
        raise TypeError(f"an output of type {type(outputs).__name__} has no logits")
    return found


def padding_token(network: nn.Module) -> int:
    """Return the token after the end of a text, by the network's configuration; else 0."""
    token = getattr(getattr(network, "config", None), "pad_token_id", None)
    return token if isinstance(token, int) and token >= 0 else 0


def vocabulary_of(network: nn.Module) -> int | None:
    """Return the number of tokens of the network's first embedding; None if it has none."""
    for module in network.modules():
        if isinstance(module, (nn.Embedding, nn.EmbeddingBag)):
            return module.num_embeddings
    return None


def forward_names(network: nn.Module) -> frozenset[str]:
    """Return the names of what a network's `forward` takes; of PEFT, also of its base's."""
    parameters = inspect.signature(network.forward).parameters
    names = frozenset(parameters)
    base = getattr(network, "get_base_model", None)
    is_open = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    if is_open and callable(base):
        names |= forward_names(base())
    return names
