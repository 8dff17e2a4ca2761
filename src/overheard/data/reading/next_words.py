"""Windows of tokenised texts, labelled by the next word."""

from dataclasses import dataclass

import torch
from jaxtyping import Int, Int64
from torch import Tensor

from overheard.core.errors import DataError, PlanError
from overheard.core.examples import Examples
from overheard.data.reading.texts import PADDING, RESERVED_TOKENS


@dataclass(frozen=True, slots=True)
class WindowSettings:
    """How texts are cut into windows.

    Args:
        context: the most words in a window.
        stride: every `stride`-th word is a label. The first is word `stride`, counted from 0,
            so that a window has `stride` words or more, or `context` if that is less.

    """

    context: int = 10
    stride: int = 4

    def __post_init__(self) -> None:
        """Refuse windows without words."""
        if self.context < 1 or self.stride < 1:
            raise PlanError(
                f"context and stride must be 1 or more, got {self.context} and {self.stride}"
            )


@dataclass(frozen=True, slots=True)
class TextWindows:
    """The windows of several texts, text by text, each from its start.

    Args:
        examples: the windows and their labels, the next words.
        texts: the number of the text from which each window is cut.

    """

    examples: Examples
    texts: Int[Tensor, " examples"]


def cut_windows(tokens: Int64[Tensor, "texts tokens"], settings: WindowSettings) -> TextWindows:
    """Cut texts into windows: every `stride`-th word is a label, the words before it its input.

    Label i is token i + RESERVED. A window is padded at its end if fewer words precede its
    label. Windows whose next word is outside the vocabulary are left out.

    Raises:
        DataError: if no window is left.

    """
    length = tokens.shape[1]
    positions = range(settings.stride, length, settings.stride)
    windows = torch.full((len(tokens), len(positions), settings.context), PADDING)
    for number, position in enumerate(positions):
        before = tokens[:, max(0, position - settings.context) : position]
        windows[:, number, : before.shape[1]] = before
    next_tokens = tokens[:, settings.stride :: settings.stride]  # (texts, positions)
    is_known = next_tokens >= RESERVED_TOKENS
    if not bool(is_known.any()):
        raise DataError(
            f"no text has a word of the vocabulary at position {settings.stride} or a multiple "
            "of it: use a smaller stride, or more tokens"
        )
    numbers = torch.arange(len(tokens))[:, None].expand_as(next_tokens)
    return TextWindows(
        Examples(windows[is_known], next_tokens[is_known] - RESERVED_TOKENS), numbers[is_known]
    )
