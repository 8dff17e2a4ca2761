"""Hostile results of NVFlare's sites, by kind, each with how a recording must list it."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import thread_time
from typing import Literal, NoReturn

import numpy as np
import pytest
import torch

pytest.importorskip("nvflare", reason="nvflare is not installed")

from nvflare.apis.dxo import DXO, DataKind, MetaKey
from nvflare.apis.shareable import Shareable

from overheard.core.parties import SERVER, Party
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.nvflare_rounds import NvflareRoundRecorder, site_party
from overheard.recorders.run_info import RunInfo

Outcome = Literal["unrecorded", "recorded"]

STEPS = str(MetaKey.NUM_STEPS_CURRENT_ROUND)

HONEST = ("one", "two")

Weights = Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class HostileResult:
    """A kind of hostile result: what makes it, given the model, and how it must be listed."""

    make: Callable[[Weights], Shareable]
    outcome: Outcome = "unrecorded"


class OtherArray(np.ndarray):
    """A class that could run any code when it is copied."""


class CodeTensor(torch.Tensor):
    """A tensor that runs code when anything is done with it."""

    @classmethod
    def __torch_function__(cls, *_: object, **__: object) -> NoReturn:
        raise SystemExit


class RaisingFloat(float):
    """A number that ends the program when it is converted."""

    def __float__(self) -> NoReturn:
        raise SystemExit

    __int__ = __lt__ = __float__


class Lazy:
    """A reference that cannot be read."""

    def materialize(self) -> NoReturn:
        raise OSError("gone")


def model_of(size: int) -> Weights:
    random = np.random.default_rng(0)
    return {f"{number}.w": random.normal(size=size // 10).astype("f4") for number in range(10)}


def honest(model: Weights, **meta: object) -> Shareable:
    data = {name: one + 1 for name, one in model.items()}
    return DXO(DataKind.WEIGHTS, data, {STEPS: 10, **meta}).to_shareable()


def nvflare_results(scale: int) -> dict[str, HostileResult]:  # noqa: PLR0915 - a list
    """Return all kinds, with up to `scale` entries and digits in each result."""
    kinds: dict[str, HostileResult] = {}
    huge = 10 ** (scale // 10)

    def with_meta(name: str, outcome: Outcome = "unrecorded", **meta: object) -> None:
        kinds[name] = HostileResult(lambda model: honest(model, **meta), outcome)

    def with_weights(
        name: str, make: Callable[[np.ndarray], object], outcome: Outcome = "unrecorded"
    ) -> None:
        kinds[name] = HostileResult(
            lambda model: DXO(
                DataKind.WEIGHTS, {key: make(one) for key, one in model.items()}, {}
            ).to_shareable(),
            outcome,
        )

    many = {f"m{number}": 0.5 for number in range(scale)}
    with_meta("many metrics", **many)
    with_meta("many nested metrics", values=many)
    at_limit = [f"m{number}" for number in range(11_900)]
    with_meta("texts at the limit", "recorded", values=dict.fromkeys(at_limit, "[1, 2]"))
    with_meta("long list", losses=[0.5] * scale)
    with_meta("long array", losses=np.broadcast_to(np.float32(1), 10**9))
    with_meta("long name", **{"m" * 1_000_001: 1.0})
    with_meta("name of controls", "recorded", **{"\x1b[2J\ud800/../x": 1.0})
    with_meta("nested values", "recorded", a={"b": {"c": {"d": {"e": {"f": 1}}}}})
    with_meta("ragged lists", "recorded", a=[[1], [2, 3], [[4]]])
    with_meta("huge number", "recorded", loss=huge)
    with_meta("number that raises", "recorded", loss=RaisingFloat(1))
    with_meta("long text", "recorded", note="[" * 100 * scale)
    with_meta("long bytes", "recorded", note=bytes(1000 * scale))
    with_meta("values of any class", "recorded", a=object(), b=Lazy(), c=np.zeros((2, 2)))
    for name, value in {
        "huge": 2**62, "of many digits": huge, "negative": -5, "infinite": float("inf"),
        "not a number": float("nan"), "that raise": RaisingFloat(10),
    }.items():  # fmt: skip
        with_meta(f"examples {name}", "recorded", **{STEPS: value})
    with_meta("claim to be encrypted", "recorded", processed_algorithm="he")
    with_weights("broadcast array", lambda one: np.broadcast_to(np.float32(1), 10**9))
    with_weights("expanded tensor", lambda one: torch.ones(1).expand(10**9))
    with_weights("tensor without memory", lambda one: torch.empty(10**12, device="meta"))
    with_weights("sparse tensor", lambda one: torch.ones(len(one)).to_sparse())
    with_weights(
        "ragged tensor",
        lambda one: unusual_tensor(
            lambda: torch.nested.nested_tensor([torch.ones(1), torch.ones(2)])
        ),
    )
    with_weights(
        "quantized tensor",
        lambda one: unusual_tensor(
            lambda: torch.quantize_per_tensor(torch.ones(len(one)), 1.0, 0, torch.quint8)
        ),
    )
    with_weights("array of another class", lambda one: one.view(OtherArray))
    with_weights("tensor with code", lambda one: torch.ones(len(one)).as_subclass(CodeTensor))
    with_weights("array of objects", lambda one: np.array([{}] * len(one), dtype=object))
    with_weights("array of texts", lambda one: np.array(["x"] * len(one)))
    with_weights("array of records", lambda one: np.zeros(len(one), [("a", "f4")]))
    with_weights("array of dates", lambda one: np.zeros(len(one), "datetime64[s]"))
    with_weights("complex numbers", lambda one: one.astype(complex))
    with_weights("codes", lambda one: one.astype(np.uint64))
    with_weights("array of no dimension", lambda one: np.float32(1))
    with_weights("number that raises in place of an array", lambda one: RaisingFloat(1))
    with_weights("huge number in place of an array", lambda one: huge)
    with_weights("bytes in place of an array", lambda one: bytes(1000 * scale))
    with_weights("reference that cannot be read", lambda one: Lazy())
    with_weights("another shape", lambda one: one[None])
    with_weights("NaN weights", lambda one: one * np.nan)
    with_weights("list in place of an array", lambda one: [0.5] * scale)
    kinds["many tensors"] = HostileResult(
        lambda _: DXO(DataKind.WEIGHTS, dict.fromkeys(many, np.ones(1)), {}).to_shareable()
    )
    kinds["names that are no texts"] = HostileResult(
        lambda model: DXO(DataKind.WEIGHTS, dict(enumerate(model.values())), {}).to_shareable()
    )
    kinds["many figures"] = HostileResult(
        lambda _: DXO(DataKind.METRICS, many, {}).to_shareable()
    )
    kinds["data of another kind"] = HostileResult(
        lambda _: DXO(DataKind.COLLECTION, {"a": 1}, {}).to_shareable()
    )
    kinds["no data exchange object"] = HostileResult(lambda _: Shareable())
    kinds["headers that are none"] = HostileResult(lambda _: Shareable({"__headers__": "x"}))
    kinds["error with data"] = HostileResult(error_with_data)
    return kinds


def unusual_tensor(make: Callable[[], torch.Tensor]) -> torch.Tensor:
    """Make a tensor of a kind that torch warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make()


def error_with_data(model: Weights) -> Shareable:
    reply = honest(model)
    reply.set_return_code("EXECUTION_EXCEPTION")
    return reply


def recorder_of(folder: Path) -> NvflareRoundRecorder:
    return NvflareRoundRecorder(
        AsyncWriter(folder, RunInfo("nvflare")), SERVER, sizes=STEPS, keep_error_texts=False
    )


def task_of(model: Weights, number: int) -> Shareable:
    data = {name: one + number for name, one in model.items()}
    task = DXO(DataKind.WEIGHTS, data).to_shareable()
    task.set_header("current_round", number)
    return task


def record_results(
    folder: Path, kinds: Mapping[str, HostileResult], rounds: int
) -> NvflareRoundRecorder:
    """Record a run of honest sites and one for each kind; the recorder is closed then."""
    model, recorder = model_of(1000), recorder_of(folder)
    sites = {name: site_party(f"h{place}") for place, name in enumerate(kinds)}
    parties: dict[str, Party] = {**sites, **{name: site_party(name) for name in HONEST}}
    for number in range(rounds):
        task = task_of(model, number)
        for name, party in parties.items():
            recorder.record_task(f"{name} {number}", party, task, tuple(parties.values()))
        for name, kind in kinds.items():
            result = kind.make(model)
            recorder.record_result(f"{name} {number}", result)
            # Again, for a task that has its result, and in the place of no task.
            recorder.record_result(f"{name} {number}", result)
            recorder.record_result(f"{name} unknown", result)
        for name in HONEST:
            recorder.record_result(f"{name} {number}", honest(model))
        recorder.end_round()
    recorder.close()
    return recorder


def seconds_of_result(folder: Path, kind: HostileResult) -> float:
    """Return the seconds of the server's thread to record one result, the best of 3."""
    model, taken = model_of(1000), list[float]()
    for number in range(3):
        recorder = recorder_of(folder / str(number))
        party = site_party("h")
        recorder.record_task("t", party, task_of(model, 0), (party,))
        result = kind.make(model)
        begin = thread_time()
        recorder.record_result("t", result)
        recorder.end_round()
        taken.append(thread_time() - begin)
        recorder.close()
    return min(taken)
