"""A mean of word vectors with sparse gradients."""

from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional


def can_be_sparse(module: nn.Module) -> bool:
    """Return whether the bag only averages the word vectors of each text."""
    return (
        type(module) is nn.EmbeddingBag
        and module.mode == "mean"
        and module.max_norm is None
        and not module.scale_grad_by_freq
        and not module.include_last_offset
    )


@final
class SparseEmbeddingBag(nn.Module):
    """`nn.EmbeddingBag` in mode "mean" with sparse gradients, sharing its weight.

    A batch takes one embedding lookup and one matrix product. Padding has weight 0; locating it
    takes `nn.EmbeddingBag(sparse=True)` a third of a step. See the row of texts in
    benchmarks/learning.py.
    """

    def __init__(self, bag: nn.EmbeddingBag) -> None:
        """Share the weight of a bag for which `can_be_sparse` is true."""
        super().__init__()
        self.weight = bag.weight
        self._padding = -1 if bag.padding_idx is None else bag.padding_idx

    def forward(
        self, tokens: Int[Tensor, "examples tokens"]
    ) -> Float[Tensor, "examples features"]:
        """Average the word vectors of each text; return zero for a text without words."""
        words = (tokens != self._padding).to(self.weight.dtype)
        shares = words / words.sum(1, keepdim=True).clamp(min=1)
        means: Tensor = _MeanOfRows.apply(tokens, shares, self.weight)  # type: ignore[no-untyped-call]
        return means


# Any: torch does not name the type of the context that autograd passes.
class _MeanOfRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tokens: Tensor, shares: Tensor, table: Tensor) -> Tensor:
        ctx.save_for_backward(tokens, shares)
        ctx.size = table.shape
        rows = functional.embedding(tokens, table)  # (examples, tokens, features)
        return torch.bmm(shares.unsqueeze(1), rows).squeeze(1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, Tensor]:
        tokens, shares = ctx.saved_tensors
        rows = shares.unsqueeze(2) * gradients[0].unsqueeze(1)  # (examples, tokens, features)
        gradient = torch.sparse_coo_tensor(
            tokens.reshape(1, -1), rows.flatten(0, 1), ctx.size, check_invariants=False
        )
        return None, None, gradient
