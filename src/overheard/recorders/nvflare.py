"""Recording of NVFlare runs: at the server, or at a site before and after its filters."""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Literal, final

from nvflare.apis.event_type import EventType
from nvflare.apis.filter import Filter
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.abstract.model import ModelLearnableKey
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType
from nvflare.private.fed.server.server_runner import ServerRunner
from pydantic import TypeAdapter

from overheard.archive.excerpt import printable_excerpt
from overheard.core.parties import SERVER, Party
from overheard.recorders.async_writer import AsyncWriter
from overheard.recorders.nvflare_contents import STEPS
from overheard.recorders.nvflare_rounds import NvflareRoundRecorder, site_party
from overheard.recorders.replies.differences import ReplyKind, Scales
from overheard.recorders.replies.reply_reading import CountUnit, ReplyReading
from overheard.recorders.run_info import RunInfo
from overheard.recorders.stated_algorithm import describe_algorithm

FRAMEWORK = f"nvflare {version('nvflare')}"

RecordingPoint = Literal["before", "after", "server"]
"""Before or after the other filters of a site's results, or at the server as they arrive."""

_RUN_INFO: TypeAdapter[RunInfo] = TypeAdapter(RunInfo)

_LOG = logging.getLogger("overheard")


@final
class RecordingWidget(FLComponent):  # type: ignore[misc]  # NVFlare has no types
    """Records the messages that the server sends and receives, as an ordinary transcript.

    Add it to the server of a job by `job.to_server(RecordingWidget(folder))`. It handles events
    of tasks and results. Its errors end the recording with a warning, but never the run. Sites
    become parties: `site-1` is `client/site-1`.

    Args:
        folder: folder for the run. A relative folder is inside the job's folder at the server,
            and must not leave it.
        facts: metadata that messages do not contain. It is stored as text, as NVFlare writes
            jobs to files.
        task: name of the training task; other tasks are not recorded.
        sizes: metadata key under which a site reports its number of examples; "" = none.
        keep_error_texts: whether to record return codes that are not NVFlare's own; omitted by
            default, as such a text may quote data.
        kind: what results of the kind `WEIGHTS` hold: "weights"; "differences", the site's
            weights minus those that it began from; or "gradients".
        rate: what the server multiplies gradients by before it subtracts them.
        scales: by what whole-number codes of weights are multiplied: a number, numbers by
            tensor, or the metadata key under which each result tells them.
        began_in: metadata key of the round whose model a site began from; "" = each began from
            the model that it was sent.
        count_unit: what sites report under `sizes`: "examples"; "steps" of their optimizer; or
            "batches" of one epoch, which a recipe in `facts` converts to examples. "unknown" =
            the number of examples is not recorded. "" = unknown under NVFlare's own key, under
            which apps put steps or examples, and examples under any other.
        group: name or number of a group that may read the recording; None = only the user of
            the server.

    """

    def __init__(
        self,
        folder: str | Path,
        facts: RunInfo | str = "",
        task: str = AppConstants.TASK_TRAIN,
        sizes: str = STEPS,
        keep_error_texts: bool = False,
        kind: ReplyKind = "weights",
        rate: float | None = None,
        scales: Scales | str | None = None,
        began_in: str = "",
        count_unit: CountUnit | Literal[""] = "",
        group: str | int | None = None,
    ) -> None:
        super().__init__()
        # NVFlare writes a component's arguments to job files from attributes of these names.
        self.folder = str(folder)
        self.facts = encode_run_info(facts)
        self.task = task
        self.sizes = sizes
        self.keep_error_texts = keep_error_texts
        self.kind = kind
        self.rate = rate
        self.scales = scales
        self.began_in = began_in
        self.count_unit = count_unit
        self.group = group
        self._recorder = _EventRecorder(
            self.folder,
            self.facts,
            task,
            sizes,
            keep_error_texts,
            SERVER,
            _reading(kind, rate, scales, began_in, count_unit, sizes),
            group=group,
        )

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Handle an event; called by NVFlare."""
        self._recorder.record_event(event_type, fl_ctx)
        if event_type == EventType.AFTER_TASK_RESULT_FILTER:
            self._recorder.record_result(fl_ctx.get_prop(FLContextKey.TASK_RESULT), fl_ctx)


@final
class RecordingFilter(Filter):  # type: ignore[misc]  # NVFlare has no types
    """Records results at its place in a chain of filters, and passes them on unchanged.

    At a site, add `recipe.add_client_output_filter(RecordingFilter(folder, "before"))`, then
    the privacy filters, then `RecordingFilter(folder, "after")`. This gives two transcripts of
    the site with the same rounds, with updates before and after the filters. In the first the
    server is listed as a reader of updates that it would read without the filters.

    Each site has its own folder in `folder`, named like the site, with `before` and `after`.
    With `where="server"`, `folder` is the run's folder, as in `RecordingWidget`.

    Args:
        folder: folder for the transcripts; a relative one is inside the job's folder at the
            site.
        where: its place.
        facts, task, sizes, keep_error_texts: as in `RecordingWidget`.
        kind, rate, scales, began_in, count_unit, group: as in `RecordingWidget`.

    """

    def __init__(
        self,
        folder: str | Path,
        where: RecordingPoint = "server",
        facts: RunInfo | str = "",
        task: str = AppConstants.TASK_TRAIN,
        sizes: str = STEPS,
        keep_error_texts: bool = False,
        kind: ReplyKind = "weights",
        rate: float | None = None,
        scales: Scales | str | None = None,
        began_in: str = "",
        count_unit: CountUnit | Literal[""] = "",
        group: str | int | None = None,
    ) -> None:
        super().__init__()
        if where not in ("before", "after", "server"):
            raise ValueError(f"where must be 'before', 'after' or 'server', got {where!r}")
        self.folder = str(folder)
        self.where = where
        self.facts = encode_run_info(facts)
        self.task = task
        self.sizes = sizes
        self.keep_error_texts = keep_error_texts
        seat = SERVER if where == "server" else None
        self.kind = kind
        self.rate = rate
        self.scales = scales
        self.began_in = began_in
        self.count_unit = count_unit
        self.group = group
        self._recorder = _EventRecorder(
            self.folder,
            self.facts,
            task,
            sizes,
            keep_error_texts,
            seat,
            _reading(kind, rate, scales, began_in, count_unit, sizes),
            where,
            group=group,
        )

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Handle an event; called by NVFlare."""
        self._recorder.record_event(event_type, fl_ctx)

    def process(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        """Record a result, and return it unchanged."""
        self._recorder.record_result(shareable, fl_ctx)
        return shareable


def encode_run_info(facts: RunInfo | str) -> str:
    """Return the metadata as text, as in a job's file; "" = none.

    Raises:
        ValueError: if a text is not valid metadata.

    """
    text = _RUN_INFO.dump_json(facts).decode() if isinstance(facts, RunInfo) else facts
    if text:
        _RUN_INFO.validate_json(text)
    return text


def _reading(
    kind: ReplyKind,
    rate: float | None,
    scales: Scales | str | None,
    began_in: str,
    count_unit: CountUnit | Literal[""],
    sizes: str,
) -> ReplyReading:
    """Return how replies are read."""
    unit = count_unit or ("unknown" if sizes == STEPS else "examples")
    return ReplyReading(kind, rate, scales, began_in, unit)


def _read_algorithm(fl_ctx: FLContext) -> str:
    """Return the algorithm of the server's controller; "" = unknown."""
    runner = fl_ctx.get_prop(FLContextKey.RUNNER)
    workflow = runner.current_wf if isinstance(runner, ServerRunner) else None
    return "" if workflow is None else describe_algorithm(workflow.controller)


@final
class _EventRecorder:
    """Records tasks and results, for both components.

    Args:
        folder, facts, task, sizes, keep_error_texts: as in `RecordingWidget`.
        seat: the observer; None = the site on which it runs.
        reading: how replies are read.
        where: place of a filter.
        group: as in `RecordingWidget`.

    """

    def __init__(
        self,
        folder: str,
        facts: str,
        task: str,
        sizes: str,
        keep_error_texts: bool,
        seat: Party | None,
        reading: ReplyReading,
        where: RecordingPoint = "server",
        *,
        group: str | int | None,
    ) -> None:
        self._folder = folder
        self._group = group
        self._facts = facts
        self._task = task
        self._sizes = sizes
        self._keep_error_texts = keep_error_texts
        self._seat = seat
        self._reading = reading
        self._where = where
        # Created when the run begins, as the component may be copied and serialised before.
        self._rounds: NvflareRoundRecorder | None = None
        self._writer: AsyncWriter | None = None
        self._last: Path | None = None
        self._has_failed = False
        # Several sites may fetch their first task at the same time.
        self._begin_lock = threading.Lock()

    def record_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Record an event that is not the event of a result."""
        match event_type:
            case EventType.AFTER_TASK_DATA_FILTER:
                self._try(lambda: self._record_task(fl_ctx))
            case AppEventType.BEFORE_AGGREGATION:
                self._try(lambda: self._with_rounds(NvflareRoundRecorder.end_round))
            case AppEventType.AFTER_SHAREABLE_TO_LEARNABLE:
                self._try(lambda: self._record_global_model(fl_ctx))
            case EventType.END_RUN:
                self._try(self._close)
            # The simulator may run each task of a site in its own process, and kills it when
            # the result is sent.
            case EventType.AFTER_SEND_TASK_RESULT if self._seat != SERVER:
                self._try(self._close)

    def record_result(self, result: object, fl_ctx: FLContext) -> None:
        """Record a result."""

        def record() -> None:
            rounds, task = self._rounds, fl_ctx.get_prop(FLContextKey.TASK_ID)
            name = fl_ctx.get_prop(FLContextKey.TASK_NAME)
            if rounds is None or not isinstance(result, Shareable):
                return
            if name in (self._task, None) or self._seat != SERVER:
                rounds.record_result(str(task), result)
            else:
                site = site_party(fl_ctx.get_peer_context().get_identity_name())
                rounds.list_result(str(name), site, result)

        self._try(record)

    def _record_task(self, fl_ctx: FLContext) -> None:
        data = fl_ctx.get_prop(FLContextKey.TASK_DATA)
        if fl_ctx.get_prop(FLContextKey.TASK_NAME) != self._task:
            return
        if not isinstance(data, Shareable):
            return
        if self._seat == SERVER:
            sender_site = site_party(fl_ctx.get_peer_context().get_identity_name())
            clients = fl_ctx.get_engine().get_clients()
            known_sites = tuple(
                sorted({sender_site, *(site_party(client.name) for client in clients)})
            )
        else:
            sender_site = site_party(fl_ctx.get_identity_name())
            known_sites = (sender_site,)
        with self._begin_lock:
            if self._rounds is None:
                self._rounds = self._begin(sender_site, data, fl_ctx)
        self._rounds.record_task(
            str(fl_ctx.get_prop(FLContextKey.TASK_ID)), sender_site, data, known_sites
        )

    def _begin(
        self, sender_site: Party, data: Shareable, fl_ctx: FLContext
    ) -> NvflareRoundRecorder:
        run_info = _RUN_INFO.validate_json(self._facts) if self._facts else RunInfo(FRAMEWORK)
        folder, is_resumed = resolve_folder(self._folder, fl_ctx), False
        if self._seat == SERVER:
            if not run_info.algorithm:
                run_info = replace(run_info, algorithm=_read_algorithm(fl_ctx))
            rounds = data.get_header(AppConstants.NUM_ROUNDS)
            if run_info.rounds is None and isinstance(rounds, int) and rounds > 0:
                run_info = replace(run_info, rounds=rounds)
        else:
            # A site does not receive the final model.
            run_info = replace(run_info, rounds=None)
            folder = folder / sender_site.removeprefix("client/") / self._where
            is_resumed = self._last is not None or is_later_round(data)
            if is_resumed:
                folder = last_run_folder(folder) if self._last is None else self._last
        self._writer = AsyncWriter(
            # A site's recording is opened again for each of its tasks.
            folder,
            run_info,
            is_resumed=is_resumed,
            ends_run=self._seat == SERVER,
            group=self._group,
        )
        if self._reading.count_unit == "unknown" and not is_resumed:
            _LOG.warning(
                "overheard: %s may be steps or examples, so numbers of examples are not "
                'recorded: state count_unit="examples" or "steps"',
                self._sizes,
            )
        return NvflareRoundRecorder(
            self._writer,
            self._seat or sender_site,
            sizes=self._sizes,
            keep_error_texts=self._keep_error_texts,
            reading=self._reading,
            recipe=run_info.recipe,
        )

    def _record_global_model(self, fl_ctx: FLContext) -> None:
        model = fl_ctx.get_prop(AppConstants.GLOBAL_MODEL)
        if isinstance(model, dict) and self._rounds is not None:
            weights = model.get(ModelLearnableKey.WEIGHTS)
            if isinstance(weights, dict):
                self._rounds.record_global_model(dict(weights))

    def _close(self) -> None:
        rounds, writer = self._rounds, self._writer
        if rounds is not None and writer is not None:
            self._rounds = self._writer = None
            rounds.close()
            self._last, self._has_failed = writer.folder, writer.stopped is not None

    def _with_rounds(self, call: Callable[[NvflareRoundRecorder], None]) -> None:
        if self._rounds is not None:
            call(self._rounds)

    def _try(self, call: Callable[[], None]) -> None:
        """Call a function; if it fails, stop recording and let the run continue."""
        if self._has_failed:
            return
        try:
            call()
        # No error may reach the run.
        except Exception as error:
            self._has_failed = True
            why = printable_excerpt(str(error)) or type(error).__name__
            _LOG.warning("overheard: the recording stops here, the run continues: %s", why)


def last_run_folder(folder: Path) -> Path:
    """Return the last folder that a run used when this folder was requested.

    A run uses the folder itself or, if it is taken, `NAME-2`, `NAME-3`, ...
    """
    suffix, found = 2, folder
    while (candidate := folder.with_name(f"{folder.name}-{suffix}")).exists():
        suffix, found = suffix + 1, candidate
    return found


def is_later_round(data: Shareable) -> bool:
    """Return whether a task belongs to a later round than the first."""
    first = data.get_header(AppConstants.START_ROUND, 0)
    number = data.get_header(AppConstants.CURRENT_ROUND, first)
    return isinstance(number, int) and isinstance(first, int) and number > first


def resolve_folder(folder: str, fl_ctx: FLContext) -> Path:
    """Resolve the folder on this machine.

    Raises:
        ValueError: if a relative folder leaves the job's folder.

    """
    if Path(folder).is_absolute():
        return Path(folder)
    job_folder = Path(fl_ctx.get_workspace().get_run_dir(fl_ctx.get_job_id())).resolve()
    resolved = (job_folder / folder).resolve()
    if not resolved.is_relative_to(job_folder):
        raise ValueError(
            f"the folder {folder!r} is outside the job's folder: choose one inside"
        )
    return resolved
