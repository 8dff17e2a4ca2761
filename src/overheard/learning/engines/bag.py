"""A mean of word vectors whose slope touches only the words that were read."""

from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional


def can_stand_in(module: nn.Module) -> bool:
    """True for a bag that averages the words of each text, and does nothing besides."""
    return (
        type(module) is nn.EmbeddingBag
        and module.mode == "mean"
        and module.max_norm is None
        and not module.scale_grad_by_freq
        and not module.include_last_offset
    )


@final
class SparseBag(nn.Module):
    """What `nn.EmbeddingBag` computes in mode "mean", with the same weight.

    One gathering of rows and one product of matrices a batch. Padding is weighed with 0 in
    place of being searched out, which takes `nn.EmbeddingBag(sparse=True)` a third of a step.
    See the row of texts in benchmarks/learning.py.
    """

    def __init__(self, bag: nn.EmbeddingBag) -> None:
        """Take over the weight of a bag that `can_stand_in`."""
        super().__init__()
        self.weight = bag.weight
        self._padding = -1 if bag.padding_idx is None else bag.padding_idx

    def forward(
        self, tokens: Int[Tensor, "examples tokens"]
    ) -> Float[Tensor, "examples features"]:
        """Average the vectors of each text's words; zero where there is none."""
        words = (tokens != self._padding).to(self.weight.dtype)
        shares = words / words.sum(1, keepdim=True).clamp(min=1)
        means: Tensor = _MeanOfRows.apply(tokens, shares, self.weight)  # type: ignore[no-untyped-call]
        return means


# Any: autograd hands over a context of a type that torch does not name.
class _MeanOfRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tokens: Tensor, shares: Tensor, table: Tensor) -> Tensor:
        ctx.save_for_backward(tokens, shares)
        ctx.size = table.shape
        rows = functional.embedding(tokens, table)  # (examples, tokens, features)
        return torch.bmm(shares.unsqueeze(1), rows).squeeze(1)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[None, None, Tensor]:
        tokens, shares = ctx.saved_tensors
        rows = shares.unsqueeze(2) * slopes[0].unsqueeze(1)  # (examples, tokens, features)
        slope = torch.sparse_coo_tensor(
            tokens.reshape(1, -1), rows.flatten(0, 1), ctx.size, check_invariants=False
        )
        return None, None, slope
