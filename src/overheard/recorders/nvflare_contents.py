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

from overheard.archive.excerpt import printable_excerpt
from overheard.core.messages import (
    Broadcast,
    Evaluation,
    MessageBody,
    MissingReply,
    UnstoredMessage,
    Update,
    Weights,
)
from overheard.core.recipe import Recipe
from overheard.recorders.async_writer import make_unstored
from overheard.recorders.replies.differences import Scales, read_update
from overheard.recorders.replies.reply_reading import ReplyReading
from overheard.recorders.reply_values import MAX_TEXTS, read_numbers_of_text, sanitize_text

STEPS = str(MetaKey.NUM_STEPS_CURRENT_ROUND)
"""Metadata key of a site's weight in FedAvg."""

MAX_METRICS = 1000
"""Most metrics of one reply that are recorded, as a site may send any number."""

MAX_EXAMPLES = 2**53
"""Larger numbers of examples are not plausible."""

MAX_DEPTH = 4
"""Most levels of nested metadata that are read."""

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


def copy_weights(values: object) -> WeightsCopy:
    """Copy weights, as the run may change them afterwards.

    Raises:
        UnreadableError: if the values are no weights, for example if they are encrypted.

    """
    if not isinstance(values, Mapping) or not values:
        raise UnreadableError("it has no weights")
    tensors = {str(name): _copy(value) for name, value in values.items()}
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
    *,
    keep_error_texts: bool,
) -> SiteAnswer:
    """Read a site's reply, and copy its arrays.

    Args:
        result: the reply.
        sizes: metadata key under which a site reports its number of examples; "" = none.
        reading: how replies are read.
        recipe: how sites train, to convert reported steps; None = unknown.
        keep_error_texts: whether to record a return code that is not NVFlare's own.

    """
    code = result.get_return_code(ReturnCode.OK)
    if code != ReturnCode.OK:
        return SiteAnswer(lambda _: MissingReply(_reason(code, keep_error_texts)))
    dxo = _dxo(result)
    if dxo is None:
        return SiteAnswer(lambda _: UnstoredMessage("other", "the answer is no DXO"))
    clear = _read_clear_text(dxo, sizes, reading, recipe)
    if dxo.data_kind == DataKind.METRICS:
        figures = dict(_first_metrics(_numbers(dxo.data, "", MAX_DEPTH)))
        metrics = {**clear.metrics, **figures}
        evaluation = Evaluation(metrics, clear.examples, clear.texts)
        return SiteAnswer(lambda _: evaluation)
    if dxo.data_kind not in (DataKind.WEIGHTS, DataKind.WEIGHT_DIFF):
        kind = printable_excerpt(str(dxo.data_kind))[:40]
        return SiteAnswer(lambda _: replace(clear, reason=f"it is data of the kind {kind!r}"))
    return _read_weights(dxo, clear, reading)


def read_unstored(
    result: Shareable, why: str, sizes: str, reading: ReplyReading, recipe: Recipe | None
) -> UnstoredMessage | None:
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
        return UnstoredMessage("other", why)
    clear = _read_clear_text(dxo, sizes, reading, recipe)
    is_weights = dxo.data_kind in (DataKind.WEIGHTS, DataKind.WEIGHT_DIFF)
    if is_weights:
        return replace(clear, kind="weights", reason=why)
    figures = dict(_first_metrics(_numbers(dxo.data, "", MAX_DEPTH)))
    return replace(clear, reason=why, metrics={**clear.metrics, **figures})


def _read_weights(dxo: DXO, clear: UnstoredMessage, reading: ReplyReading) -> SiteAnswer:
    """Read the weights of a reply, or else why it has none, beside its clear text."""
    metadata = _metadata(dxo)
    try:
        weights = copy_weights(dxo.data)
    except UnreadableError as error:
        is_encrypted = bool(metadata.get(MetaKey.PROCESSED_ALGORITHM))
        unread = replace(clear, kind="masked" if is_encrypted else "other", reason=str(error))
        return SiteAnswer(lambda _: unread)
    kind = reading.kind
    if dxo.data_kind == DataKind.WEIGHT_DIFF and kind == "weights":
        kind = "differences"
    began_in = _examples(metadata.get(reading.began_in)) if reading.began_in else None
    if reading.began_in and began_in is None:
        reason = f"it does not tell the round that it began in, {reading.began_in!r}"
        untold = replace(clear, kind="weights", reason=reason)
        return SiteAnswer(lambda _: untold)
    scales = reading.find_scales(clear.metrics, {})
    make = partial(_update, weights, replace(reading, kind=kind), scales, clear)
    return SiteAnswer(make, weights.size, began_in)


def _read_clear_text(
    dxo: DXO, sizes: str, reading: ReplyReading, recipe: Recipe | None
) -> UnstoredMessage:
    """Return what a reply tells beside its weights."""
    reported = _examples(_metadata(dxo).get(sizes)) if sizes else None
    is_examples = reading.count_unit == "examples"
    metadata = {
        name: value
        for name, value in _metadata(dxo).items()
        if name != sizes or not is_examples
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
    scales: Scales | None,
    clear: UnstoredMessage,
    sent: Weights | None,
) -> MessageBody:
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


def _copy(value: object) -> Tensor | Callable[[], Tensor]:
    if isinstance(value, Tensor):
        return value.detach().cpu().clone()
    if isinstance(value, (np.ndarray, np.generic, float, int)):
        try:
            return torch.from_numpy(np.array(value))
        except (TypeError, ValueError) as error:
            kind = getattr(value, "dtype", type(value).__name__)
            raise UnreadableError(f"torch does not support the dtype {kind}") from error
    # NVFlare's reference to a tensor on the disk, whose class is private to NVFlare.
    read = getattr(value, "materialize", None)
    if callable(read):
        return partial(_read, read)
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


def _metadata(dxo: DXO | None) -> dict[object, object]:
    return dict(dxo.meta) if dxo is not None and isinstance(dxo.meta, dict) else {}


def _examples(value: object) -> int | None:
    if isinstance(value, (bool, np.bool_)) or not isinstance(
        value, (int, float, np.integer, np.floating)
    ):
        return None
    if not isfinite(value) or int(value) != value or not 0 <= value <= MAX_EXAMPLES:
        return None
    return int(value)


def _numbers(value: object, name: str, depth: int) -> Iterator[tuple[str, float]]:
    """Yield all finite numbers in nested metadata, each under its dotted path."""
    if isinstance(value, Mapping) and depth:
        for key, child in value.items():
            if isinstance(key, str):
                yield from _numbers(child, f"{name}.{key}" if name else key, depth - 1)
    elif isinstance(value, (list, tuple, np.ndarray)) and depth and np.ndim(value) == 1:
        for place, child in enumerate(value):
            yield from _numbers(child, f"{name}[{place}]", 0)
    elif isinstance(value, str):
        for key, number in read_numbers_of_text(name, value):
            if not isinstance(number, str):
                yield from _numbers(number, key, 0)
    elif isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)):
        try:
            number = float(value)
        except OverflowError:
            return
        if isfinite(number) and _LEGIBLE.fullmatch(name):
            yield name, number


def _texts(metadata: Mapping[object, object]) -> Iterator[str]:
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
