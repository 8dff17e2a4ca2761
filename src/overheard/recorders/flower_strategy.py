"""Recording of a Flower run of the older API, by a strategy that forwards and records calls.

It needs the flwr of the app, from 1.18 on, and not the extra `flower`.
"""

import logging
import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from time import time
from typing import Any, final

from flwr.common import EvaluateIns, EvaluateRes, FitIns, FitRes, Parameters, Scalar
from flwr.server.client_manager import ClientManager
from flwr.server.client_proxy import ClientProxy
from flwr.server.strategy import Strategy

from overheard.archive.manifest import DefenseRecord
from overheard.core.mechanism import ClientSampling
from overheard.core.parties import Party
from overheard.core.recipe import Recipe
from overheard.core.task import Task
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.flower_arrays import PackedArray, PackedArrays, count_bytes
from overheard.recorders.flower_replies import (
    FlowerReply,
    FlowerRequest,
    ReplyContent,
    ReplyError,
    RequestKind,
)
from overheard.recorders.flower_rounds import FlowerRoundRecorder
from overheard.recorders.node_names import PARTITION_KEY, NodeNames
from overheard.recorders.replies.array_names import ArrayNames
from overheard.recorders.replies.differences import ReplyKind, Scales, UnstorableError
from overheard.recorders.replies.limits import ReplyLimits, copy_values, is_round_number
from overheard.recorders.replies.reply_reading import CountUnit, ReplyReading
from overheard.recorders.replies.secure_aggregation import are_one_object
from overheard.recorders.reply_values import (
    AnswerMetadata,
    NamedValue,
    describe_values,
    sanitize_text,
    separate_values,
)
from overheard.recorders.run_info import RunInfo
from overheard.recorders.stated_algorithm import adds_mean, describe_algorithm

_Requests = list[tuple[ClientProxy, FitIns]] | list[tuple[ClientProxy, EvaluateIns]]

# Any: what a client sends in its place, a `flwr.common.FitRes` or `EvaluateRes`.
_Failure = tuple[ClientProxy, Any] | BaseException

_SIZE = "num_examples"
"""The field of a reply with the number of examples that the client used."""

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")

_LOG = logging.getLogger("overheard")


# Where flwr is not installed, mypy knows nothing of it.
@final
class RecordingStrategy(Strategy):  # type: ignore[misc, unused-ignore]
    """A strategy that records in a transcript what another one sends and receives.

    Use it in place of the strategy, and change nothing else:

        strategy = RecordingStrategy(FedAvg(...), "recording")

    All calls are forwarded unchanged. Attributes are those of the wrapped strategy, and it
    counts as an instance of its class. An error in recording ends the recording with a warning
    (see `stopped`), but never the run. Pending writes finish when the app ends.

    A client is the party `client/<cid>`. A `flwr.client.NumPyClient` sends arrays without
    names: they are named by `tensors`, or else by their position, "0", "1", ... An audit then
    names them by the state dict of the plan's model.

    Under SecAgg+ all replies have the mean of the cohort in place of weights: it is recorded as
    the aggregate of the round, and no reply as an update.

    A strategy sees replies only when the last one has arrived, and not from whom a failure
    comes. So the times of replies are not recorded, and a client without reply is missing.

    Args:
        strategy: the wrapped strategy.
        folder: folder for the run. If it has a transcript, the run goes to `NAME-2` beside it.
        tensors: names of the arrays in the order in which they are sent, best as
            `net.state_dict()`, whose shapes are then compared; empty = their positions. If
            there are more or fewer arrays, or other shapes, a warning says so, and arrays are
            named by their positions.
        model: the architecture, in words; "" = unknown.
        task: shape of an input and names of the classes.
        recipe: how clients train.
        defenses: records of all defenses in force; () = there are none; None = not stated.
        rounds: number of planned rounds.
        participation: share of the clients sampled in a round (0..1).
        sampling: how they are sampled; None = not stated.
        keep_error_texts: whether to record the texts of clients' errors, which may quote their
            data, and not only the error codes.
        names_key: the metric of a client's reply that contains its name in the app.
        kind: what replies hold: "weights"; "differences", the client's weights minus those that
            it began from; or "gradients".
        rate: what the server multiplies gradients by before it subtracts them.
        scales: by what whole-number codes of weights are multiplied: a number, numbers by
            tensor, or the name of the metric in which each reply tells them.
        began_in: the metric with the number of the round whose model a client began from; "" =
            each began from the model that it was sent last.
        count_unit: what clients report as their number of examples: "examples"; "steps" of
            their optimizer; or "batches" of one epoch. Without a recipe, the number of examples
            is then unknown.
        group: name or number of a group that may read the recording; None = only the user who
            runs the server.

    """

    _strategy: Strategy
    _recorder: "_StrategyRecorder"
    _leave: Callable[[], object]

    def __init__(
        self,
        strategy: Strategy,
        folder: Path | str,
        *,
        tensors: Iterable[str] = (),
        model: str = "",
        task: Task | None = None,
        recipe: Recipe | None = None,
        defenses: Iterable[DefenseRecord] | None = None,
        rounds: int | None = None,
        participation: float | None = None,
        sampling: ClientSampling | None = None,
        keep_error_texts: bool = False,
        names_key: str = PARTITION_KEY,
        kind: ReplyKind = "weights",
        rate: float | None = None,
        scales: Scales | str | None = None,
        began_in: str = "",
        count_unit: CountUnit = "examples",
        group: str | int | None = None,
    ) -> None:
        """Begin a recording; the folder is created with the first message."""
        reading = ReplyReading(kind, rate, scales, began_in, count_unit)
        run_info = RunInfo(
            f"flwr {version('flwr')}",
            model,
            task,
            recipe,
            () if defenses is None else tuple(defenses),
            rounds,
            participation,
            are_defenses_stated=defenses is not None,
            algorithm=describe_algorithm(strategy),
            sampling=sampling,
        )
        writer = AsyncWriter(Path(folder), run_info, log=logging.getLogger("flwr"), group=group)
        round_recorder = FlowerRoundRecorder(
            writer,
            keep_error_texts=keep_error_texts,
            reading=reading,
            recipe=recipe,
            adds_mean=adds_mean(strategy),
        )
        recorder = _StrategyRecorder(
            writer, round_recorder, ArrayNames(tensors), NodeNames(names_key, writer), reading
        )
        # All other attributes are those of the wrapped strategy.
        self.__dict__.update(_strategy=strategy, _recorder=recorder)
        self.__dict__["_leave"] = weakref.finalize(self, recorder.finish)

    @property
    def folder(self) -> Path:
        """Folder of the recording; it may change until the first message."""
        return self._recorder.writer.folder

    @property
    def stopped(self) -> str | None:
        """Why the recording stopped; None = it has not."""
        return self._recorder.writer.stopped

    def finish(self) -> None:
        """Record the last model, and end the recording; the strategy keeps working."""
        self._leave()

    # Not only does a server ask for it: so `isinstance` holds for the wrapped strategy's class.
    @property  # type: ignore[misc, unused-ignore]
    def __class__(self) -> type:
        """The class of the wrapped strategy."""
        return type(self._strategy)

    # Other attributes of the wrapped strategy, of any class.
    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the wrapped strategy."""
        if name.startswith("__") or name == "_strategy":
            raise AttributeError(name)
        return getattr(self._strategy, name)

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute of the wrapped strategy."""
        setattr(self._strategy, name, value)

    def initialize_parameters(self, client_manager: ClientManager) -> Parameters | None:
        """Return the initial model of the wrapped strategy."""
        return self._strategy.initialize_parameters(client_manager)

    def configure_fit(
        self, server_round: int, parameters: Parameters, client_manager: ClientManager
    ) -> list[tuple[ClientProxy, FitIns]]:
        """Record the requests to train."""
        requests = self._strategy.configure_fit(server_round, parameters, client_manager)
        self._recorder.record_requests("train", requests)
        return requests

    def aggregate_fit(
        self,
        server_round: int,
        results: list[tuple[ClientProxy, FitRes]],
        failures: list[tuple[ClientProxy, FitRes] | BaseException],
    ) -> tuple[Parameters | None, dict[str, Scalar]]:
        """Record the updates, before the wrapped strategy may change them."""
        mean = self._recorder.find_mean(results)
        if mean is None:
            self._recorder.record_replies(results, failures)
        aggregated, metrics = self._strategy.aggregate_fit(server_round, results, failures)
        if mean is not None:
            self._recorder.record_mean(results, failures, mean, aggregated)
        if aggregated is not None:
            self._recorder.last_model = aggregated
        return aggregated, metrics

    def configure_evaluate(
        self, server_round: int, parameters: Parameters, client_manager: ClientManager
    ) -> list[tuple[ClientProxy, EvaluateIns]]:
        """Record the requests to evaluate."""
        requests = self._strategy.configure_evaluate(server_round, parameters, client_manager)
        self._recorder.record_requests("evaluate", requests)
        return requests

    def aggregate_evaluate(
        self,
        server_round: int,
        results: list[tuple[ClientProxy, EvaluateRes]],
        failures: list[tuple[ClientProxy, EvaluateRes] | BaseException],
    ) -> tuple[float | None, dict[str, Scalar]]:
        """Record the evaluations."""
        self._recorder.record_replies(results, failures)
        return self._strategy.aggregate_evaluate(server_round, results, failures)

    def evaluate(
        self, server_round: int, parameters: Parameters
    ) -> tuple[float, dict[str, Scalar]] | None:
        """Evaluate by the wrapped strategy; nothing of it travels."""
        return self._strategy.evaluate(server_round, parameters)


@final
class _StrategyRecorder:
    """Records the calls of a strategy; never raises."""

    def __init__(
        self,
        writer: AsyncWriter,
        rounds: FlowerRoundRecorder,
        arrays: ArrayNames,
        names: NodeNames,
        reading: ReplyReading,
    ) -> None:
        self.writer = writer
        self.last_model: Parameters | None = None
        self._rounds = rounds
        self._arrays = arrays
        self._names = names
        self._reading = reading
        self._sent: PackedArrays = {}

    def record_requests(self, kind: RequestKind, requests: _Requests) -> None:
        """Record what clients are sent."""
        self._record(
            lambda: self._rounds.record_requests(list(self._read_requests(kind, requests)))
        )

    def record_replies(self, results: Sequence[Any], failures: Sequence[_Failure]) -> None:
        """Record all replies to the last requests."""
        self._record(lambda: self._record_replies(results, failures))

    def find_mean(self, results: Sequence[Any]) -> PackedArrays | None:
        """Return what secure aggregation put in place of the weights of all replies.

        None = each reply has weights of its own, or the model that the clients were sent.
        """
        # Any error here comes from the replies, whose recording says so.
        try:
            parameters = [reply.parameters for _, reply in results]
            mean = self._pack(parameters[0]) if are_one_object(parameters) else None
            return None if mean == self._sent else mean
        except Exception:
            return None

    def record_mean(
        self,
        results: Sequence[Any],
        failures: Sequence[_Failure],
        mean: PackedArrays,
        aggregated: Parameters | None,
    ) -> None:
        """Record replies of which the server reads the mean alone.

        Args:
            results: the replies, whose weights are that mean.
            failures: what came in place of other replies.
            mean: the mean, as it was before the strategy may have changed it.
            aggregated: the next model of the server; None = it stays.

        """

        def record() -> None:
            after = self._sent if aggregated is None else self._pack(aggregated)
            self._record_replies(results, failures, mean, after)

        self._record(record)

    def finish(self) -> None:
        """Record the last model, unless it was sent to clients, and end."""
        model = self.last_model
        if model is not None:
            self._record(lambda: self._rounds.record_final_model(self._pack(model)))
        self._record(self._rounds.end_round)
        self.writer.close()

    def _read_requests(self, kind: RequestKind, requests: _Requests) -> Iterator[FlowerRequest]:
        sent = time()
        packed = dict[int, PackedArrays]()
        for proxy, request in requests or ():
            parameters = request.parameters
            if id(parameters) not in packed:
                self._arrays.compare(parameters.tensors)
                self._sent = packed[id(parameters)] = self._pack(parameters)
            config = describe_values(_named(request.config))
            yield FlowerRequest(_party(proxy), kind, packed[id(parameters)], config, sent)

    def _record_replies(
        self,
        results: Sequence[Any],
        failures: Sequence[_Failure],
        mean: PackedArrays | None = None,
        after: PackedArrays | None = None,
    ) -> None:
        # A failure without a client is the error of a call: its client counts as missing.
        failed = [one for one in failures if isinstance(one, tuple)]
        is_masked = mean is not None
        replies = [
            *(
                FlowerReply(_party(proxy), partial(self._read, reply, is_masked))
                for proxy, reply in results
            ),
            *(
                FlowerReply(_party(proxy), partial(_read_error, reply))
                for proxy, reply in failed
            ),
        ]
        if mean is not None and after is not None:
            self._rounds.record_mean(replies, mean, after)
        else:
            self._rounds.record_replies(replies)
        self._rounds.end_round()
        for proxy, reply in results:
            self._names.read_reply(_party(proxy), partial(_find_metric, reply))
        self._names.write()

    def _read(
        self, reply: FitRes | EvaluateRes, is_masked: bool, limits: ReplyLimits
    ) -> ReplyContent:
        """Read a reply, whose content is untrusted."""
        copied = copy_values(reply.metrics or {})
        metrics, size = copied.values, copied.size
        values: list[NamedValue] = [(_SIZE, reply.num_examples)]
        if isinstance(reply, EvaluateRes):
            values.append(("loss", reply.loss))
            return ReplyContent({}, partial(_separate, values, metrics), size=size)
        began_in = metrics.get(self._reading.began_in) if self._reading.began_in else None
        if not is_masked:
            _check_parameters(reply.parameters, limits)
        arrays = {} if is_masked else self._pack(reply.parameters, len(self._sent))
        return ReplyContent(
            arrays,
            partial(_separate, values, metrics),
            began_in=began_in if is_round_number(began_in) else None,
            is_masked=is_masked,
            size=count_bytes(arrays) + size,
        )

    def _pack(self, parameters: Parameters, expected: int = 0) -> dict[str, PackedArray]:
        """Name the arrays.

        Args:
            parameters: the arrays.
            expected: how many the model has; 0 = as many as these. Of a reply with more or
                fewer, nobody knows which is which, so their names are none of the model.

        """
        count = len(parameters.tensors)
        names = self._arrays.of(count)
        if expected and count != expected:
            names = [f"array {place + 1} of {count}" for place in range(count)]
        return {
            name: PackedArray("", parameters.tensor_type, data)
            for name, data in zip(names, parameters.tensors, strict=True)
        }

    def _record(self, call: Callable[[], None]) -> None:
        """Call a function of the recorder; its errors end the recording, but not the run."""
        if self.writer.stopped is not None:
            return
        try:
            call()
        except Exception as error:
            _LOG.debug("overheard: error while recording", exc_info=error)
            self.writer.stop(error)


def _party(proxy: ClientProxy) -> Party:
    """Return the party of a client; an id that is no plain name is replaced by its digest."""
    number = str(proxy.cid)
    if not _PLAIN_NAME.fullmatch(number):
        number = blake2b(number.encode(errors="replace"), digest_size=8).hexdigest()
    return Party(f"client/{number}")


def _check_parameters(parameters: Parameters, limits: ReplyLimits) -> None:
    """Refuse the arrays of a reply that are beyond the limits, before they are copied."""
    tensors = parameters.tensors
    if type(tensors) is not list:
        raise UnstorableError("its arrays are no list", "other")
    limits.check_count(len(tensors))
    if any(type(one) is not bytes for one in tensors):
        raise UnstorableError("an array in it is not serialized as bytes", "other")
    limits.check_bytes(sum(map(len, tensors)))


def _separate(
    values: Sequence[tuple[str, object]], metrics: Mapping[str, object]
) -> AnswerMetadata:
    return separate_values([*values, *_named(metrics)], (_SIZE,))


def _named(values: Mapping[str, object] | None) -> Iterator[tuple[str, object]]:
    """Yield every value with a plain name."""
    for name, value in (values or {}).items():
        yield sanitize_text(name if type(name) is str else f"<{type(name).__name__}>"), value


def _read_error(reply: FitRes | EvaluateRes, _: ReplyLimits) -> ReplyError:
    """Read the status of a reply without success."""
    status = reply.status
    has_arrays = isinstance(reply, FitRes) and bool(reply.parameters.tensors)
    name, text = sanitize_text(str(status.code.name)), status.message
    return ReplyError(name, text if type(text) is str else "", has_arrays)


def _find_metric(reply: FitRes | EvaluateRes, key: str) -> object:
    """Return a metric of a reply; None if it has none or cannot be read."""
    # Any error here comes from the sender's content.
    try:
        return reply.metrics.get(key)
    except Exception:
        return None
