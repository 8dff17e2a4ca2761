"""Conversion of NVFlare's `Shareable` objects to messages of a transcript."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from typing import final

import numpy as np
import torch
from nvflare.apis.dxo import DXO, DataKind, MetaKey, from_shareable
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import ReservedHeaderKey, Shareable
from torch import Tensor
from torch.nn import Parameter

from overheard.archive.excerpt import printable_excerpt
from overheard.core.messages import (
    Broadcast,
    Evaluation,
    MessageBody,
    MissingReply,
    UnstoredKind,
    UnstoredMessage,
    Update,
    Weights,
)
from overheard.core.recipe import Recipe
from overheard.recorders.async_writer import make_unstored
from overheard.recorders.replies.differences import read_update
from overheard.recorders.replies.limits import (
    MAX_DEPTH,
    MAX_EXAMPLES,
    NO_MODEL,
    PLAIN_NUMBERS,
    CopiedValues,
    ReplyLimits,
    check_names,
    copy_values,
)
from overheard.recorders.replies.reply_reading import ReplyReading
from overheard.recorders.reply_values import MAX_TEXTS, read_numbers_of_text, sanitize_text

STEPS = str(MetaKey.NUM_STEPS_CURRENT_ROUND)
"""Metadata key of a site's weight in FedAvg."""

MAX_METRICS = 1000
"""Most metrics of one reply that are recorded, as a site may send any number."""

_TENSORS = frozenset({Tensor, Parameter})

_ARRAYS = frozenset({np.ndarray, np.memmap})

_LEGIBLE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./ :-]{0,99}(\[[0-9]{1,6}\])?")


class UnreadableError(ValueError):
    """A message has no readable weights."""


@final
@dataclass(frozen=True, slots=True)
class WeightsCopy:
    """A private copy of weights.

    Args:
        tensors: each tensor, or a function that reads it if NVFlare stored it on the disk.
        size: bytes in memory.

    """

    tensors: Mapping[str, Tensor | Callable[[], Tensor]]
    size: int

    def read(self) -> dict[str, Tensor]:
        """Load all tensors into memory."""
        return {
            name: one if isinstance(one, Tensor) else one()
            for name, one in self.tensors.items()
        }


@final
@dataclass(frozen=True, slots=True)
class SiteAnswer:
    """A site's reply.

    Args:
        make_body: makes the message, given the weights that the site received (None = none).
        size: bytes kept in memory until then.
        began_in: number of the round whose model the site began from; None = not told.

    """

    make_body: Callable[[Weights | None], MessageBody]
    size: int = 0
    began_in: int | None = None


def copy_weights(values: object, limits: ReplyLimits | None = None) -> WeightsCopy:
    """Copy weights, as the run may change them afterwards.

    Args:
        values: the weights.
        limits: how many there may be; None = they are those of the run itself.

    Raises:
        UnreadableError: if the values are no weights, for example if they are encrypted.
        UnstorableError: if they are beyond the limits; nothing was copied then.

    """
    if not isinstance(values, Mapping) or not values:
        raise UnreadableError("it has no weights")
    if limits is not None:
        limits.check_count(len(values))
        check_names(values)
        limits.check_bytes(sum(map(_count_bytes, values.values())))
    if any(type(name) is not str for name in values):
        raise UnreadableError("a name in it is no text")
    tensors = {name: _copy(value) for name, value in values.items()}
    return WeightsCopy(
        tensors, sum(one.nbytes for one in tensors.values() if isinstance(one, Tensor))
    )


def read_task_weights(task: Shareable) -> Mapping[str, object]:
    """Return a task's weights without copying them; empty if there are none."""
    dxo = _dxo(task)
    if dxo is None or dxo.data_kind != DataKind.WEIGHTS or not isinstance(dxo.data, dict):
        return {}
    return dict(dxo.data)


def make_broadcast(weights: WeightsCopy | None, config: Mapping[str, str]) -> MessageBody:
    """Make the broadcast of a global model; one that is not stored if it cannot be read."""
    if weights is None:
        reason = "the task's weights cannot be read (none, or encrypted)"
        return UnstoredMessage("other", reason)
    return Broadcast(weights.read(), config)


def read_task_config(task: Shareable) -> dict[str, str]:
    """Read a task's headers and metadata as text, by name.

    NVFlare's transport headers, whose names begin with an underscore, are omitted.
    """
    headers = task.get(ReservedHeaderKey.HEADERS)
    dxo = _dxo(task)
    # FedAvg may keep the metadata of the previous round.
    metadata = {**_metadata(dxo), **(headers if isinstance(headers, dict) else {})}
    excluded = {str(ReservedHeaderKey.CONTENT_TYPE), str(ReservedHeaderKey.AUDIT_EVENT_ID)}
    return {
        name: _text(value)
        for name, value in metadata.items()
        if isinstance(name, str) and _LEGIBLE.fullmatch(name) and name[0] != "_"
        if name not in excluded and value is not None
    }


def read_site_answer(
    result: Shareable,
    sizes: str,
    reading: ReplyReading,
    recipe: Recipe | None = None,
    limits: ReplyLimits = NO_MODEL,
    *,
    keep_error_texts: bool,
) -> SiteAnswer:
    """Copy a site's reply, which is read on the thread of the writer.

    Args:
        result: the reply.
        sizes: metadata key under which a site reports its number of examples; "" = none.
        reading: how replies are read.
        recipe: how sites train, to convert reported steps; None = unknown.
        limits: how many tensors and bytes it may have.
        keep_error_texts: whether to record a return code that is not NVFlare's own.

    Raises:
        UnstorableError: if the reply is beyond the limits; nothing was copied then.

    """
    code, dxo = result.get_return_code(ReturnCode.OK), _dxo(result)
    if code != ReturnCode.OK:
        reason = _reason(code, keep_error_texts)
        if dxo is not None and dxo.data:
            # The server can read it, whatever the code says.
            why = f"it came with a {reason}, and with data all the same"
            return SiteAnswer(lambda _: UnstoredMessage("other", why))
        return SiteAnswer(lambda _: MissingReply(reason))
    if dxo is None:
        return SiteAnswer(lambda _: UnstoredMessage("other", "the answer is no DXO"))
    copied = copy_values(_metadata(dxo))
    read_clear = partial(_read_clear_text, copied.values, sizes, reading, recipe)
    if dxo.data_kind == DataKind.METRICS:
        figures = _copy_figures(dxo)
        return SiteAnswer(
            lambda _: _read_evaluation(read_clear(), figures.values),
            copied.size + figures.size,
        )
    if dxo.data_kind not in (DataKind.WEIGHTS, DataKind.WEIGHT_DIFF):
        why = f"it is data of the kind {_describe_kind(dxo)!r}"
        return SiteAnswer(lambda _: replace(read_clear(), reason=why), copied.size)
    return _read_weights(dxo, copied, read_clear, reading, limits)


def read_unstored(
    result: Shareable, why: str, sizes: str, reading: ReplyReading, recipe: Recipe | None
) -> SiteAnswer | None:
    """Return the clear text of a reply that is not stored; None if it is an error.

    Args:
        result: the reply.
        why: why it is not stored.
        sizes: metadata key under which a site reports its number of examples; "" = none.
        reading: how replies are read.
        recipe: how sites train; None = unknown.

    """
    if result.get_return_code(ReturnCode.OK) != ReturnCode.OK:
        return None
    dxo = _dxo(result)
    if dxo is None:
        return SiteAnswer(lambda _: UnstoredMessage("other", why))
    copied = copy_values(_metadata(dxo))
    read_clear = partial(_read_clear_text, copied.values, sizes, reading, recipe)
    is_weights = dxo.data_kind in (DataKind.WEIGHTS, DataKind.WEIGHT_DIFF)
    if is_weights:
        return SiteAnswer(
            lambda _: replace(read_clear(), kind="weights", reason=why), copied.size
        )
    figures = _copy_figures(dxo)

    def read(_: Weights | None) -> UnstoredMessage:
        clear = read_clear()
        return replace(
            clear, reason=why, metrics={**clear.metrics, **_read_figures(figures.values)}
        )

    return SiteAnswer(read, copied.size + figures.size)


def _copy_figures(dxo: DXO) -> CopiedValues:
    return copy_values(dxo.data if isinstance(dxo.data, dict) else {"value": dxo.data})


def _read_figures(figures: Mapping[str, object]) -> dict[str, float]:
    return dict(_first_metrics(_numbers(figures, "", MAX_DEPTH)))


def _read_evaluation(clear: UnstoredMessage, figures: Mapping[str, object]) -> Evaluation:
    metrics = {**clear.metrics, **_read_figures(figures)}
    return Evaluation(metrics, clear.examples, clear.texts)


def _describe_kind(dxo: DXO) -> str:
    kind = dxo.data_kind
    return printable_excerpt(kind)[:40] if type(kind) is str else type(kind).__name__


def _read_weights(
    dxo: DXO,
    copied: CopiedValues,
    read_clear: Callable[[], UnstoredMessage],
    reading: ReplyReading,
    limits: ReplyLimits,
) -> SiteAnswer:
    """Copy the weights of a reply, or else say why it has none, beside its clear text."""
    metadata = copied.values
    try:
        weights = copy_weights(dxo.data, limits)
    except UnreadableError as error:
        is_encrypted = bool(metadata.get(MetaKey.PROCESSED_ALGORITHM))
        content: UnstoredKind = "masked" if is_encrypted else "other"
        unread = str(error)
        return SiteAnswer(
            lambda _: replace(read_clear(), kind=content, reason=unread), copied.size
        )
    kind = reading.kind
    if dxo.data_kind == DataKind.WEIGHT_DIFF and kind == "weights":
        kind = "differences"
    began_in = _examples(metadata.get(reading.began_in)) if reading.began_in else None
    if reading.began_in and began_in is None:
        reason = f"it does not tell the round that it began in, {reading.began_in!r}"
        return SiteAnswer(
            lambda _: replace(read_clear(), kind="weights", reason=reason), copied.size
        )
    make = partial(_update, weights, replace(reading, kind=kind), read_clear)
    return SiteAnswer(make, weights.size + copied.size, began_in)


def _read_clear_text(
    values: Mapping[str, object], sizes: str, reading: ReplyReading, recipe: Recipe | None
) -> UnstoredMessage:
    """Return what a reply tells beside its weights."""
    reported = _examples(values.get(sizes)) if sizes else None
    is_examples = reading.count_unit == "examples"
    metadata = {
        name: value for name, value in values.items() if name != sizes or not is_examples
    }
    return UnstoredMessage(
        "other",
        "",
        reading.count_examples(reported, recipe),
        dict(_first_metrics(_numbers(metadata, "", MAX_DEPTH))),
        tuple(name for name, _ in zip(_texts(metadata), range(MAX_TEXTS), strict=False)),
    )


def _update(
    weights: WeightsCopy,
    reading: ReplyReading,
    read_clear: Callable[[], UnstoredMessage],
    sent: Weights | None,
) -> MessageBody:
    clear = read_clear()
    scales = reading.find_scales(clear.metrics, {})
    if sent is None:
        return replace(clear, reason="it answers a task that brought no weights")
    try:
        update = read_update(weights.read(), sent, reading.kind, reading.rate, scales)
    except ValueError as error:
        unstored = make_unstored(error)
        return replace(clear, kind=unstored.kind, reason=unstored.reason)
    return Update(
        update.delta, clear.examples, clear.metrics, texts=clear.texts, absent=update.absent
    )


def _count_bytes(value: object) -> int:
    """Return the bytes that a copy of an array takes; 0 = it is none, or on the disk."""
    if type(value) in _TENSORS:
        assert isinstance(value, Tensor)
        return value.numel() * value.element_size()
    if type(value) in _ARRAYS:
        assert isinstance(value, np.ndarray)
        return value.nbytes
    return 0


def _copy(value: object) -> Tensor | Callable[[], Tensor]:
    # A class derived from these may run any code.
    if type(value) in _TENSORS:
        assert isinstance(value, Tensor)
        is_plain = value.layout is torch.strided and not value.is_nested
        if not is_plain or value.is_quantized:
            raise UnreadableError("a tensor in it is sparse, ragged or quantized")
        return value.detach().cpu().clone(memory_format=torch.contiguous_format)
    if type(value) in _ARRAYS or type(value) in PLAIN_NUMBERS:
        try:
            return torch.from_numpy(np.array(value))
        except (TypeError, ValueError) as error:
            kind = getattr(value, "dtype", type(value).__name__)
            raise UnreadableError(f"torch does not support the dtype {kind}") from error
    # NVFlare's reference to a tensor on the disk, whose class is private to NVFlare.
    read = getattr(type(value), "materialize", None)
    if callable(read):
        return partial(_read, partial(read, value))
    raise UnreadableError(f"a {type(value).__name__} is not an array; it may be encrypted")


def _read(reader: Callable[[], object]) -> Tensor:
    tensor = _copy(reader())
    assert isinstance(tensor, Tensor), "a tensor read from the disk is no reference"
    return tensor


def _dxo(shareable: Shareable) -> DXO | None:
    try:
        return from_shareable(shareable)
    except ValueError:
        return None


def _metadata(dxo: DXO | None) -> dict[str, object]:
    return dxo.meta if dxo is not None and isinstance(dxo.meta, dict) else {}


def _examples(value: object) -> int | None:
    if type(value) not in PLAIN_NUMBERS or type(value) in (bool, np.bool_):
        return None
    assert isinstance(value, int | float | np.integer | np.floating)
    # Infinity and NaN are out of range, too.
    if not 0 <= value <= MAX_EXAMPLES or int(value) != value:
        return None
    return int(value)


def _numbers(value: object, name: str, depth: int) -> Iterator[tuple[str, float]]:
    """Yield all finite numbers in a copy of metadata, each under its dotted path."""
    if isinstance(value, Mapping) and depth:
        for key, child in value.items():
            if type(key) is str:
                yield from _numbers(child, f"{name}.{key}" if name else key, depth - 1)
    elif isinstance(value, tuple) and depth:
        for place, child in enumerate(value):
            yield from _numbers(child, f"{name}[{place}]", 0)
    elif isinstance(value, str):
        for key, number in read_numbers_of_text(name, value):
            if not isinstance(number, str):
                yield from _numbers(number, key, 0)
    elif type(value) in PLAIN_NUMBERS:
        try:
            number = float(value)  # type: ignore[arg-type]
        except OverflowError:
            return
        if isfinite(number) and _LEGIBLE.fullmatch(name):
            yield name, number


def _texts(metadata: Mapping[str, object]) -> Iterator[str]:
    """Yield the names of the texts and bytes in metadata that do not just list numbers."""
    for name, value in metadata.items():
        if isinstance(value, bytes) or (
            isinstance(value, str)
            and all(isinstance(one, str) for _, one in read_numbers_of_text("", value))
        ):
            yield sanitize_text(str(name))


def _first_metrics(numbers: Iterator[tuple[str, float]]) -> Iterator[tuple[str, float]]:
    for _, number in zip(range(MAX_METRICS), numbers, strict=False):
        yield number


def _text(value: object) -> str:
    """Format a plain value as JSON, on one line and with limited length."""
    return printable_excerpt(
        value if isinstance(value, str) else json.dumps(_plain(value, MAX_DEPTH))
    )


def _plain(value: object, depth: int) -> object:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case np.generic():
            return value.item()
        case Mapping() if depth:
            return {str(key): _plain(child, depth - 1) for key, child in value.items()}
        case list() | tuple() if depth:
            return [_plain(child, depth - 1) for child in value]
        case _:
            return f"<{type(value).__name__}>"


def _reason(code: object, keep_error_texts: bool) -> str:
    """Return the return code if it is one of NVFlare's, as a site may send any text."""
    known = {value for name, value in vars(ReturnCode).items() if not name.startswith("_")}
    if keep_error_texts or code in known:
        return f"return code {printable_excerpt(str(code))}"
    return "a return code that is not NVFlare's (its text was omitted)"
