"""Cuts tokenised texts into windows, whose label is the word that comes next."""

from dataclasses import dataclass

import torch
from jaxtyping import Int, Int64
from torch import Tensor

from overheard.core.errors import DataError, PlanError
from overheard.core.examples import Examples
from overheard.data.reading.texts import PADDING, RESERVED


@dataclass(frozen=True, slots=True)
class WindowSettings:
    """How texts are cut.

    Args:
        context: words in a window at most.
        stride: every how many-th word is to be foretold; the first is word `stride`, counted
            from 0, so that a window has `stride` words or more, or `context` if that is less.

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
class Windows:
    """What several texts are cut into: one text after the other, each from its start.

    Args:
        examples: the windows, and what is to be foretold from each.
        texts: the number of the text that each window is cut out of.

    """

    examples: Examples
    texts: Int[Tensor, " examples"]


def next_words(tokens: Int64[Tensor, "texts tokens"], settings: WindowSettings) -> Windows:
    """Every `stride`-th word of each text as a label, and the words before it as its input.

    Label i stands for token i + RESERVED. A window is padded at its end where fewer words come
    before. A next word outside the vocabulary has no label: those windows are left out.

    Raises:
        DataError: if no window is left.

    """
    length = tokens.shape[1]
    places = range(settings.stride, length, settings.stride)
    windows = torch.full((len(tokens), len(places), settings.context), PADDING)
    for number, place in enumerate(places):
        before = tokens[:, max(0, place - settings.context) : place]
        windows[:, number, : before.shape[1]] = before
    following = tokens[:, settings.stride :: settings.stride]  # (texts, places)
    known = following >= RESERVED
    if not bool(known.any()):
        raise DataError(
            f"no text has a known word at place {settings.stride} or a multiple of it: take a "
            "smaller stride, or more tokens"
        )
    numbers = torch.arange(len(tokens))[:, None].expand_as(following)
    return Windows(Examples(windows[known], following[known] - RESERVED), numbers[known])
