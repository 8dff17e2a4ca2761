"""Hostile replies of Flower clients, by kind, each with how a recording must list it."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import count
from pathlib import Path
from time import sleep, thread_time
from typing import Literal, NoReturn

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra flower is not installed")

from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

from overheard.recorders.flower import RecordingGrid

Outcome = Literal["unrecorded", "recorded", "both"]
"""How a recording lists a reply: with its reason; as an update; or two replies, one of each."""

Arrays = Mapping[str, np.ndarray]

HONEST = (1, 2)
FIRST_HOSTILE = 10


@dataclass(frozen=True, slots=True)
class HostileReply:
    """A kind of hostile reply.

    Args:
        make: makes the replies of a client to a request, given the model.
        outcome: how a recording must list them.

    """

    make: Callable[[Message, Arrays], Sequence[Message]]
    outcome: Outcome = "unrecorded"


class SlowFloat(float):
    """A number that takes a minute to convert."""

    def __float__(self) -> float:
        sleep(60)
        return 0.0


class RaisingFloat(float):
    """A number that fails to convert, compare or print."""

    def __float__(self) -> NoReturn:
        raise SystemExit

    __eq__ = __lt__ = __hash__ = __repr__ = __str__ = __float__  # type: ignore[assignment]


def model_of(size: int) -> Arrays:
    random = np.random.default_rng(0)
    return {
        f"layer.{number}.weight": random.normal(size=size // 10).astype(np.float32)
        for number in range(10)
    }


def plain(
    request: Message,
    model: Arrays,
    metrics: object = None,
    arrays: Mapping[str, Array] | None = None,
    config: object = None,
) -> Message:
    """Return a reply with these parts in place of honest ones, without Flower's checks."""
    content = RecordDict(
        {
            "arrays": ArrayRecord(
                {} if arrays else {n: Array(one + 1) for n, one in model.items()}
            ),
            "metrics": MetricRecord({"num-examples": 10}),
            "config": ConfigRecord(),
        }
    )
    if arrays:
        content["arrays"].__dict__["_data"] = arrays
    if metrics is not None:
        content["metrics"].__dict__["_data"] = metrics
    if config is not None:
        content["config"].__dict__["_data"] = config
    return Message(content, reply_to=request)


def npy(array: np.ndarray, **changes: object) -> Array:
    """Return an array whose record has these values in place of its own."""
    packed = Array(np.ones(1))
    file = BytesIO()
    np.save(file, array, allow_pickle=array.dtype.hasobject)
    packed.data, packed.shape = file.getvalue(), array.shape
    packed.__dict__.update(changes)
    return packed


def lying(header: str) -> Array:
    """Return an array whose header claims another shape or type than its bytes have."""
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    return npy(np.ones(1), data=data + bytes(40))


def metadata(**changes: object) -> Callable[[Message, Arrays], Sequence[Message]]:
    """Return what makes an honest reply with these fields in its metadata."""

    def make(request: Message, model: Arrays) -> Sequence[Message]:
        reply = plain(request, model)
        reply.metadata.__dict__.update({f"_{name}": one for name, one in changes.items()})
        return [reply]

    return make


def flower_replies(scale: int) -> dict[str, HostileReply]:  # noqa: PLR0915 - a list
    """Return all kinds, with up to `scale` entries, characters and digits in each reply."""
    huge = 10 ** (scale // 10)
    kinds: dict[str, HostileReply] = {}

    def with_metrics(name: str, metrics: object, outcome: Outcome = "unrecorded") -> None:
        kinds[name] = HostileReply(
            lambda request, model: [plain(request, model, metrics)], outcome
        )

    def with_arrays(
        name: str,
        make: Callable[[Arrays], Mapping[str, Array]],
        outcome: Outcome = "unrecorded",
    ) -> None:
        kinds[name] = HostileReply(
            lambda request, model: [plain(request, model, arrays=make(model))], outcome
        )

    def with_config(name: str, config: object, outcome: Outcome = "unrecorded") -> None:
        kinds[name] = HostileReply(
            lambda request, model: [plain(request, model, config=config)], outcome
        )

    def with_array(
        name: str, make: Callable[[np.ndarray], Array], outcome: Outcome = "unrecorded"
    ) -> None:
        with_arrays(name, lambda model: {key: make(one) for key, one in model.items()}, outcome)

    with_metrics("many metrics", {f"m{number}": 0.5 for number in range(scale)})
    with_metrics("long list", {"losses": [0.5] * scale})
    with_metrics("long name", {"m" * 1_000_001: 0.5})
    with_metrics("name that is cut", {"m" * 1000: 0.5}, "recorded")
    with_metrics("name of controls", {"\x1b[2J\ud800/../../x\0": 0.5}, "recorded")
    with_metrics("names in two cases", {"loss": 0.5, "Loss": 0.1, "LOSS": 0.2}, "recorded")
    with_metrics("huge number", {"loss": huge}, "recorded")
    with_metrics("number that raises", {"loss": RaisingFloat(1)}, "recorded")
    with_metrics("number that is slow", {"loss": SlowFloat(1)}, "recorded")
    with_metrics("nested values", {"a": {"b": {"c": {"d": {"e": {"f": 1}}}}}}, "recorded")
    with_metrics("many nested values", {"a": {str(number): 1 for number in range(scale)}})
    with_metrics("NaN and infinity", {"a": float("nan"), "b": float("inf")}, "recorded")
    with_metrics("values of any class", {"a": object(), "b": np.ones(3), "c": None}, "recorded")
    for name, value in {
        "huge": 2**62, "of many digits": huge, "negative": -5, "infinite": float("inf"),
        "not a number": float("nan"), "in half": 0.5, "that raises": RaisingFloat(10),
    }.items():  # fmt: skip
        is_huge = name == "huge"
        with_metrics(
            f"examples {name}",
            {"num-examples": value},
            "unrecorded" if is_huge else "recorded",
        )
    with_metrics("name of another node", {"num-examples": 5, "partition-id": 0}, "recorded")
    with_metrics("name of many digits", {"num-examples": 5, "partition-id": huge}, "recorded")
    at_limit = {f"m{number}": 0.5 for number in range(11_900)}
    with_metrics("metrics at the limit", at_limit, "recorded")
    with_config("texts at the limit", dict.fromkeys(at_limit, "[1, 2]" * 10), "recorded")
    with_config("texts beyond the limit", dict.fromkeys(at_limit, "x" * 100), "recorded")
    with_metrics("lists at the limit", {f"m{n}": [0.5] for n in range(1990)}, "recorded")
    with_metrics("empty lists", {f"m{number}": [] for number in range(11_900)})
    with_config("numbers in texts", {
        f"t{number}": f"[{'1,' * 4990}1]" for number in range(99)
    }, "recorded")  # fmt: skip
    with_config("many texts", {f"t{number}": "x" for number in range(scale)})
    with_config("long text", {"t": "[" * 100 * scale}, "recorded")
    with_config("long bytes", {"t": bytes(1000 * scale)}, "recorded")
    with_config("text of digits", {"t": "[" + "9" * 9000 + ", 1]"}, "recorded")
    with_arrays("many tensors", lambda model: dict.fromkeys(
        (f"t{number}" for number in range(scale // 10)), Array(np.ones(1, np.float32))
    ))  # fmt: skip
    with_arrays("long names of tensors", lambda model: {
        f"{number}{'n' * scale}": Array(one) for number, one in enumerate(model.values())
    })  # fmt: skip
    with_arrays("names of tensors with paths", lambda model: {
        f"../\x1b\ud800/{name}": Array(one) for name, one in model.items()
    })  # fmt: skip
    with_arrays("names of tensors in another case", lambda model: {
        name.upper(): Array(one) for name, one in model.items()
    })  # fmt: skip
    with_arrays("some tensors", lambda model: dict(
        [(name, Array(one)) for name, one in model.items()][:3]
    ), "recorded")  # fmt: skip
    with_array("much data", lambda one: npy(one, data=bytes(1000 * scale)))
    with_array("data that is no bytes", lambda one: npy(one, data=[1] * 10))
    with_array("data that is written later", lambda one: npy(one, data=bytearray(100)))
    with_array("zip bomb", lambda one: npy(one, data=zip_bomb(scale), stype="numpy.npz"))
    with_array("zip bomb as an array", lambda one: npy(one, data=zip_bomb(scale)))
    with_array("objects", lambda one: npy(np.array([{}], dtype=object)))
    with_array("NaN weights", lambda one: npy(one * np.nan))
    with_array("infinite weights", lambda one: npy(one + np.float32("inf")))
    with_array("huge shape", lambda one: lying(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }"
    ))  # fmt: skip
    with_array("negative shape", lambda one: lying(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-5, -2), }"
    ))  # fmt: skip
    with_array("shape of many digits", lambda one: lying(
        f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({'9' * 9000},), }}"
    ))  # fmt: skip
    with_array("nested header", lambda one: lying("(" * 9000))
    with_array("shape that multiplies", lambda one: lying(
        f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({'2147483647,' * 500}), }}"
    ))  # fmt: skip
    with_array(
        "other dtype than stated", lambda one: npy(one, dtype="bfloat16" * scale), "recorded"
    )
    with_array("other serialization", lambda one: npy(one, stype="x" * scale))
    with_array("arrays of no dimension", lambda one: npy(np.float32(1)))
    with_array("codes", lambda one: npy(one.astype(np.int64)))
    with_array("texts", lambda one: npy(one.astype("S8")))
    with_array("complex numbers", lambda one: npy(one.astype(complex)))
    with_array("records", lambda one: npy(np.zeros(len(one), [("a", "f4"), ("b", "f4")])))
    with_array("another shape", lambda one: npy(one[None]))
    with_array("no numbers", lambda one: npy(one[:0]))
    kinds["many records"] = HostileReply(
        lambda request, _: [many_records(request, scale // 10)]
    )
    kinds["records at the limit"] = HostileReply(
        lambda request, _: [many_records(request, 1000)]
    )
    kinds["records of arrays at the limit"] = HostileReply(
        lambda request, model: [array_records(request, model)]
    )
    kinds["no content"] = HostileReply(
        lambda request, _: [Message(RecordDict(), reply_to=request)]
    )
    kinds["keys of secure aggregation"] = HostileReply(
        lambda request, _: [
            Message(
                RecordDict({"secaggplus_configs": ConfigRecord({"k": b"x"})}), reply_to=request
            )
        ]
    )
    kinds["content that raises"] = HostileReply(
        lambda request, model: [raising(request, model)]
    )
    kinds["error with content"] = HostileReply(error_with_content)
    kinds["two replies"] = HostileReply(
        lambda request, model: [plain(request, model), plain(request, model)], "both"
    )
    kinds["reply to the first request"] = HostileReply(metadata(reply_to_message_id="1"))
    kinds["reply to another round"] = HostileReply(metadata(reply_to_message_id="0"))
    kinds["reply to no text"] = HostileReply(metadata(reply_to_message_id=[1]))
    kinds["id of another node"] = HostileReply(metadata(src_node_id=HONEST[0]))
    kinds["id that is none"] = HostileReply(metadata(src_node_id=-1))
    kinds["id of many digits"] = HostileReply(metadata(src_node_id=huge))
    kinds["id that is a text"] = HostileReply(metadata(src_node_id="../../x"))
    kinds["another kind of message"] = HostileReply(metadata(message_type="query"))
    kinds["kind that is no text"] = HostileReply(metadata(message_type=7))
    for name, value in {
        "in the future": 1e308, "of many digits": huge, "negative": -1e300,
        "not a number": float("nan"), "that raises": RaisingFloat(1), "that is a text": "now",
    }.items():  # fmt: skip
        kinds[f"time {name}"] = HostileReply(metadata(created_at=value), "recorded")
    return kinds


def zip_bomb(scale: int) -> bytes:
    file = BytesIO()
    np.savez_compressed(file, w=np.zeros(scale, np.float32))
    return file.getvalue()


def many_records(request: Message, count: int) -> Message:
    content = RecordDict()
    record = MetricRecord({"a": 1.0})
    content.__dict__["_data"] = {f"r{number}": record for number in range(count)}
    return Message(content, reply_to=request)


def array_records(request: Message, model: Arrays) -> Message:
    record = ArrayRecord({"a": Array(np.ones(1, np.float32))})
    return Message(
        RecordDict({f"r{number}": record for number in range(130)}), reply_to=request
    )


class Raising:
    """Raises an error at every access."""

    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError(name)


def raising(request: Message, model: Arrays) -> Message:
    reply = plain(request, model)
    reply.__dict__["_content"] = Raising()
    return reply


def error_with_content(request: Message, model: Arrays) -> Sequence[Message]:
    reply = plain(request, model)
    reply.__dict__["_error"] = Error(code=3, reason="x" * 10**6)
    return [reply]


class HostileNodes(Grid):
    """A grid with honest nodes, and one node for each kind of hostile reply."""

    def __init__(self, model: Arrays, kinds: Sequence[HostileReply]) -> None:
        self.model = model
        self.hostile = {FIRST_HOSTILE + place: kind for place, kind in enumerate(kinds)}
        self.numbers = count(1)

    @property
    def nodes(self) -> tuple[int, ...]:
        return (*HONEST, *self.hostile)

    def set_run(self, run: Run) -> None: ...

    @property
    def run(self) -> Run:
        raise NotImplementedError

    def create_message(self, *args: object, **options: object) -> Message:
        raise NotImplementedError

    def get_node_ids(self) -> Sequence[int]:
        return self.nodes

    def get_nodes(self) -> Sequence[object]:
        return ()

    def push_messages(self, messages: object) -> Sequence[str]:
        return ()

    def pull_messages(self, message_ids: object) -> Sequence[Message]:
        return ()

    def send_and_receive(
        self, messages: Sequence[Message], *, timeout: float | None = None
    ) -> Sequence[Message]:
        replies = []
        for message in messages:
            message.metadata.__dict__["_message_id"] = str(next(self.numbers))
            kind = self.hostile.get(message.metadata.dst_node_id)
            if kind is None:
                replies.append(plain(message, self.model))
            else:
                # Before the honest ones, whose places some of them try to take.
                replies = [*kind.make(message, self.model), *replies]
        return replies


def ask(nodes: Sequence[int], model: Arrays, number: int) -> list[Message]:
    content = RecordDict(
        {
            "arrays": ArrayRecord({name: Array(one + number) for name, one in model.items()}),
            "config": ConfigRecord({"server-round": number}),
        }
    )
    return [Message(content, dst_node_id=node, message_type="train") for node in nodes]


@contextmanager
def as_server() -> Iterator[None]:
    """Make messages as the task of a server does."""
    fields = ("_run_id", "_task_id", "_node_id")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in fields:
            patch.setattr(TaskIdentity, name, 1)
        yield


def record_run(
    folder: Path, kinds: Sequence[HostileReply], *, size: int = 1000, rounds: int = 3
) -> RecordingGrid:
    """Record a run of honest nodes and one for each kind; return the grid, which has ended."""
    model = model_of(size)
    with as_server():
        grid = RecordingGrid(HostileNodes(model, kinds), folder)
        for number in range(rounds):
            list(grid.send_and_receive(ask(grid.nodes, model, number)))
        grid.finish()
    return grid


def seconds_of_server(folder: Path, kind: HostileReply, *, size: int = 1000) -> float:
    """Return the seconds of the server's thread to record one reply, the best of 3."""
    model = model_of(size)
    taken = []
    with as_server():
        for number in range(3):
            nodes = HostileNodes(model, [kind])
            grid = RecordingGrid(nodes, folder / str(number))
            requests = ask([FIRST_HOSTILE], model, number)
            grid._record(lambda: grid._record_requests(requests))  # noqa: B023
            replies = nodes.send_and_receive(requests)
            begin = thread_time()
            grid._record(lambda: grid._record_replies(replies))  # noqa: B023
            taken.append(thread_time() - begin)
            grid.finish()
    return min(taken)
