"""What a `Shareable` of NVFlare says, in the words of a transcript."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import final

import numpy as np
import torch
from nvflare.apis.dxo import DXO, DataKind, MetaKey, from_shareable
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import ReservedHeaderKey, Shareable
from torch import Tensor

from overheard.archive.spelled import spelled
from overheard.core.messages import Body, Broadcast, Evaluation, Missing, Update, Weights

STEPS = str(MetaKey.NUM_STEPS_CURRENT_ROUND)
"""Where a site says by how much its update counts: what FedAvg weighs it by."""

MOST_METRICS = 1000
"""Numbers that are kept of one answer: a site may send any number of them."""

MOST_EXAMPLES = 2**53
"""No site has as many."""

DEEPEST = 4
"""Levels of nested metadata that are looked into."""

_LEGIBLE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./ :-]{0,99}")


class UnreadableError(ValueError):
    """What travelled holds no weights that anybody could read here."""


@final
@dataclass(frozen=True, slots=True)
class Copied:
    """Tensors that nobody changes any more, by name.

    Args:
        held: each tensor, or what reads it from the disk where NVFlare left it there.
        size: bytes in memory.

    """

    held: Mapping[str, Tensor | Callable[[], Tensor]]
    size: int

    def read(self) -> dict[str, Tensor]:
        """All of them in memory."""
        return {
            name: one if isinstance(one, Tensor) else one() for name, one in self.held.items()
        }


@final
@dataclass(frozen=True, slots=True)
class SiteAnswer:
    """What a site answered.

    Args:
        body: what it says, given the weights that the site was sent (None = none were).
        size: bytes that it keeps in memory until it is asked.

    """

    body: Callable[[Weights | None], Body]
    size: int = 0


def copied(values: object) -> Copied:
    """Weights as they are now, whatever the run does with them afterwards.

    Raises:
        UnreadableError: if these are none, such as where they are encrypted.

    """
    if not isinstance(values, Mapping) or not values:
        raise UnreadableError("it holds no weights")
    held = {str(name): _copy(value) for name, value in values.items()}
    return Copied(held, sum(one.nbytes for one in held.values() if isinstance(one, Tensor)))


def weights_in(task: Shareable) -> Mapping[str, object]:
    """The weights that a task brings, as they are, uncopied; empty where it brings none."""
    dxo = _dxo(task)
    if dxo is None or dxo.data_kind != DataKind.WEIGHTS or not isinstance(dxo.data, dict):
        return {}
    return dict(dxo.data)


def broadcast(weights: Copied | None, config: Mapping[str, str]) -> Body:
    """The global model; missing where nobody here can read it."""
    if weights is None:
        return Missing("not recorded: the task's weights cannot be read (none, or encrypted)")
    return Broadcast(weights.read(), config)


def config_in(task: Shareable) -> dict[str, str]:
    """What else a task tells in clear, as text, by name: headers and metadata.

    NVFlare's own headers of transport, whose names begin with an underscore, are left out.
    """
    headers = task.get(ReservedHeaderKey.HEADERS)
    dxo = _dxo(task)
    # The metadata may be left from the round before, as FedAvg leaves them.
    told = {**_metadata(dxo), **(headers if isinstance(headers, dict) else {})}
    apart = {str(ReservedHeaderKey.CONTENT_TYPE), str(ReservedHeaderKey.AUDIT_EVENT_ID)}
    return {
        name: _text(value)
        for name, value in told.items()
        if isinstance(name, str) and _LEGIBLE.fullmatch(name) and name[0] != "_"
        if name not in apart and value is not None
    }


def answer_in(result: Shareable, sizes: str, *, keep_error_texts: bool) -> SiteAnswer:
    """What a site answered, its arrays copied.

    Args:
        result: as it came.
        sizes: the metadata under which a site says how many examples it has; "" = nowhere.
        keep_error_texts: whether a return code is kept that is none of NVFlare's own.

    """
    code = result.get_return_code(ReturnCode.OK)
    if code != ReturnCode.OK:
        return SiteAnswer(lambda _: Missing(_reason(code, keep_error_texts)))
    dxo = _dxo(result)
    if dxo is None:
        return SiteAnswer(lambda _: Missing("not recorded: the answer is no DXO"))
    examples = _examples(_metadata(dxo).get(sizes)) if sizes else None
    told = {name: value for name, value in _metadata(dxo).items() if name != sizes}
    metrics = dict(_few(_numbers(told, "", DEEPEST)))
    if dxo.data_kind == DataKind.METRICS:
        said = Evaluation({**metrics, **dict(_few(_numbers(dxo.data, "", DEEPEST)))}, examples)
        return SiteAnswer(lambda _: said)
    if dxo.data_kind not in (DataKind.WEIGHTS, DataKind.WEIGHT_DIFF):
        kind = spelled(str(dxo.data_kind))[:40]
        return SiteAnswer(lambda _: Missing(f"not recorded: it is data of the kind {kind!r}"))
    try:
        weights = copied(dxo.data)
    except UnreadableError as error:
        why = f"not recorded: {error}"
        return SiteAnswer(lambda _: Missing(why))
    is_difference = dxo.data_kind == DataKind.WEIGHT_DIFF
    return SiteAnswer(partial(_update, weights, is_difference, examples, metrics), weights.size)


def _update(
    weights: Copied,
    is_difference: bool,
    examples: int | None,
    metrics: Mapping[str, float],
    sent: Weights | None,
) -> Body:
    if sent is None:
        return Missing("not recorded: it answers a task that brought no weights")
    local = weights.read()
    try:
        delta = {
            name: _difference(name, local.get(name), start, is_difference)
            for name, start in sent.items()
            if start.is_floating_point()
        }
    except UnreadableError as error:
        return Missing(f"not recorded: {error}")
    return Update(delta, examples, metrics)


def _difference(name: str, local: Tensor | None, start: Tensor, is_difference: bool) -> Tensor:
    # A tensor that was kept back tells no more than that nothing changed.
    if local is None:
        return torch.zeros_like(start)
    if local.shape != start.shape:
        raise UnreadableError(
            f"{spelled(name)!r} came as {tuple(local.shape)} and was sent as "
            f"{tuple(start.shape)}"
        )
    return local if is_difference else local - start


def _copy(value: object) -> Tensor | Callable[[], Tensor]:
    if isinstance(value, Tensor):
        return value.detach().cpu().clone()
    if isinstance(value, (np.ndarray, np.generic, float, int)):
        try:
            return torch.from_numpy(np.array(value))
        except (TypeError, ValueError) as error:
            kind = getattr(value, "dtype", type(value).__name__)
            raise UnreadableError(f"a tensor holds {kind}, which torch has not") from error
    # NVFlare's reference to a tensor that it left on the disk: its class is private to it.
    read = getattr(value, "materialize", None)
    if callable(read):
        return partial(_read, read)
    raise UnreadableError(f"a tensor is a {type(value).__name__}: no array, or encrypted")


def _read(reader: Callable[[], object]) -> Tensor:
    read = _copy(reader())
    assert isinstance(read, Tensor), "what was read from the disk is no reference to it"
    return read


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
    if not isfinite(value) or int(value) != value or not 0 <= value <= MOST_EXAMPLES:
        return None
    return int(value)


def _numbers(value: object, name: str, deep: int) -> Iterator[tuple[str, float]]:
    """All finite numbers in nested metadata, each under the names that lead to it."""
    if isinstance(value, Mapping) and deep:
        for key, held in value.items():
            if isinstance(key, str):
                yield from _numbers(held, f"{name}.{key}" if name else key, deep - 1)
    elif isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)):
        try:
            number = float(value)
        except OverflowError:
            return
        if isfinite(number) and _LEGIBLE.fullmatch(name):
            yield name, number


def _few(numbers: Iterator[tuple[str, float]]) -> Iterator[tuple[str, float]]:
    for _, number in zip(range(MOST_METRICS), numbers, strict=False):
        yield number


def _text(value: object) -> str:
    """Plain values as JSON, on one line and no longer than an error message."""
    return spelled(value if isinstance(value, str) else json.dumps(_plain(value, DEEPEST)))


def _plain(value: object, deep: int) -> object:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case np.generic():
            return value.item()
        case Mapping() if deep:
            return {str(key): _plain(held, deep - 1) for key, held in value.items()}
        case list() | tuple() if deep:
            return [_plain(held, deep - 1) for held in value]
        case _:
            return f"<{type(value).__name__}>"


def _reason(code: object, keep_error_texts: bool) -> str:
    """The return code, if it is one of NVFlare's: a site may write there what it likes."""
    known = {value for name, value in vars(ReturnCode).items() if not name.startswith("_")}
    if keep_error_texts or code in known:
        return f"return code {spelled(str(code))}"
    return "another return code than NVFlare has (its text was left out)"
