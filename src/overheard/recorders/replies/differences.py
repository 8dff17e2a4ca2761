"""The update that a reply means: one rule for all recorders and the import."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor

from overheard.archive.excerpt import printable_excerpt
from overheard.core.messages import UnstoredKind, Weights

ReplyKind = Literal["weights", "differences", "gradients"]
"""What replies hold: a client's weights; its weights minus those that it began from; or a
gradient, which the server subtracts times a rate."""

Scales = float | Mapping[str, float]
"""By what whole-number codes are multiplied: one number, or one by the name of each tensor."""


@final
class UnstorableError(ValueError):
    """The content of a message cannot be stored.

    Args:
        why: the reason.
        kind: what the content is.

    """

    def __init__(self, why: str, kind: UnstoredKind) -> None:
        super().__init__(why)
        self.kind = kind


@final
@dataclass(frozen=True, slots=True)
class ReplyUpdate:
    """The update that a reply means.

    Args:
        delta: the client's weights minus those that it began from.
        absent: names of tensors that the reply lacks; they count as unchanged.
        extra: names of tensors that the model does not have; they are left out.

    """

    delta: dict[str, Tensor]
    absent: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()


def read_update(
    sent: Weights,
    start: Weights,
    kind: ReplyKind = "weights",
    rate: float | None = None,
    scales: Scales | None = None,
) -> ReplyUpdate:
    """Return the update that a reply means, given the model that its client began from.

    - Numbers of 16 bits are widened to 32, so that a difference is not rounded. Otherwise the
      wider of both types is kept.
    - Tensors of the model that are not floating-point (counters) have no difference.
    - A tensor of floats that arrives as whole numbers is codes: it is multiplied by its scale,
      or else refused. A single whole number is a counter, and is taken as it is.
    - A tensor that the reply lacks is unchanged; one that the model lacks is left out. Both are
      named in the result.
    - NaN and infinities stay, and are refused when the update is stored.

    Args:
        sent: the tensors of the reply.
        start: the model that the client began from.
        kind: what the reply holds.
        rate: what the server multiplies gradients by before it subtracts them.
        scales: the scales of codes.

    Raises:
        UnstorableError: if the reply holds codes without a scale, has no tensor of the model,
            or one of another shape.
        ValueError: if gradients have no rate.

    """
    expected = [name for name, one in start.items() if one.is_floating_point()]
    if not any(name in sent for name in expected):
        raise UnstorableError(
            f"it has other tensors than the broadcast model: extra {list_names(sent)}, missing "
            f"{list_names(expected)}",
            "weights",
        )
    if kind == "gradients" and rate is None:
        raise ValueError("gradients need the rate by which the server multiplies them")
    delta, absent = {}, []
    for name in expected:
        base = start[name]
        if name not in sent:
            absent.append(name)
            delta[name] = torch.zeros_like(base)
            continue
        one = sent[name]
        if one.shape != base.shape:
            raise UnstorableError(
                f"{printable_excerpt(name)!r} has shape {tuple(one.shape)}, but "
                f"{tuple(base.shape)} in the broadcast",
                "weights",
            )
        delta[name] = _read_tensor(name, one, base, kind, rate, scales)
    extra = tuple(name for name in sent if name not in start)
    return ReplyUpdate(delta, tuple(absent), extra)


def list_names(names: Mapping[str, object] | list[str] | tuple[str, ...]) -> str:
    """List a few of these names, which are untrusted, in quotes."""
    first = ", ".join(repr(printable_excerpt(name[:60])) for name in sorted(names)[:3])
    return f"{first}{' and more' if len(names) > 3 else ''}" or "none"


def _read_tensor(
    name: str,
    sent: Tensor,
    base: Tensor,
    kind: ReplyKind,
    rate: float | None,
    scales: Scales | None,
) -> Tensor:
    numbers = _decode(name, sent, scales)
    if kind == "differences":
        return numbers
    wide = torch.promote_types(torch.promote_types(numbers.dtype, base.dtype), torch.float32)
    if kind == "gradients":
        assert rate is not None, "checked by the caller"
        return numbers.to(wide) * -rate
    return numbers.to(wide) - base.to(wide)


def _decode(name: str, sent: Tensor, scales: Scales | None) -> Tensor:
    """Return floating-point numbers: those that were sent, or those that codes stand for."""
    if sent.is_floating_point():
        return sent
    scale = scales.get(name) if isinstance(scales, Mapping) else scales
    if scale is not None:
        return sent.to(torch.float32) * scale
    if sent.numel() == 1:
        return sent.to(torch.float32)
    kind = str(sent.dtype).removeprefix("torch.")
    raise UnstorableError(
        f"{printable_excerpt(name)!r} arrived as {kind}, which are codes of numbers: state "
        "their scale by the option `scales`",
        "codes",
    )
