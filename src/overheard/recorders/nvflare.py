"""Records runs of NVFlare: at the server, or at a site before and after its filters."""

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
from pydantic import TypeAdapter

from overheard.archive.spelled import spelled
from overheard.core.parties import SERVER, Party
from overheard.recorders.facts import Facts
from overheard.recorders.nvflare_contents import STEPS
from overheard.recorders.nvflare_places import is_later, last, placed
from overheard.recorders.nvflare_rounds import NvflareRounds, site
from overheard.recorders.scribe import Scribe

FRAMEWORK = f"nvflare {version('nvflare')}"

Where = Literal["before", "after", "server"]
"""Before or after the other filters of a site's results; or at the server, as they come in."""

_FACTS: TypeAdapter[Facts] = TypeAdapter(Facts)

_LOG = logging.getLogger("overheard")


@final
class RecordingWidget(FLComponent):  # type: ignore[misc]  # NVFlare has no types
    """Records what the server says and hears, as an ordinary transcript.

    To be added to the server of a job, `job.to_server(RecordingWidget(folder))`. It listens to
    the events of task and result; whatever fails in it ends the recording with a warning,
    never the run. Sites become parties: `site-1` is `client/site-1`.

    Args:
        folder: for the run. One that is relative lies in the job's own folder at the server,
            with what else the job leaves there, and may not lead out of it.
        facts: what no message tells. A job is written to a file before it runs, so it is kept
            as text.
        task: the task that trains; no other is recorded.
        sizes: the metadata under which a site says how many examples it has; "" = nowhere.
        keep_error_texts: whether return codes are kept that are none of NVFlare's own; left
            out by default, as such a text may speak about data.

    """

    def __init__(
        self,
        folder: str | Path,
        facts: Facts | str = "",
        task: str = AppConstants.TASK_TRAIN,
        sizes: str = STEPS,
        keep_error_texts: bool = False,
    ) -> None:
        super().__init__()
        # NVFlare writes a component's arguments to the job from attributes of these names.
        self.folder = str(folder)
        self.facts = told(facts)
        self.task = task
        self.sizes = sizes
        self.keep_error_texts = keep_error_texts
        self._ear = _Ear(self.folder, self.facts, task, sizes, keep_error_texts, SERVER)

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Listen; NVFlare calls it."""
        self._ear.hear(event_type, fl_ctx)
        if event_type == EventType.AFTER_TASK_RESULT_FILTER:
            self._ear.answered(fl_ctx.get_prop(FLContextKey.TASK_RESULT), fl_ctx)


@final
class RecordingFilter(Filter):  # type: ignore[misc]  # NVFlare has no types
    """Records results at its place in a chain of filters, and lets them through as they are.

    At a site, `recipe.add_client_output_filter(RecordingFilter(folder, "before"))`, then the
    privacy filters, then `RecordingFilter(folder, "after")`: two transcripts of that site with
    the same rounds, the updates before and after those filters. In the first the server is
    said to read what it would have read without them.

    Each site has a folder of its own in `folder`, named for it, and in it `before` and `after`.
    At the server, where `server` is told, it is the run's folder, as of `RecordingWidget`.

    Args:
        folder: see there; one that is relative lies in the job's folder at the site.
        where: its place.
        facts, task, sizes, keep_error_texts: as of `RecordingWidget`.

    """

    def __init__(
        self,
        folder: str | Path,
        where: Where = "server",
        facts: Facts | str = "",
        task: str = AppConstants.TASK_TRAIN,
        sizes: str = STEPS,
        keep_error_texts: bool = False,
    ) -> None:
        super().__init__()
        if where not in ("before", "after", "server"):
            raise ValueError(f"where is 'before', 'after' or 'server', got {where!r}")
        self.folder = str(folder)
        self.where = where
        self.facts = told(facts)
        self.task = task
        self.sizes = sizes
        self.keep_error_texts = keep_error_texts
        seat = SERVER if where == "server" else None
        self._ear = _Ear(self.folder, self.facts, task, sizes, keep_error_texts, seat, where)

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Listen; NVFlare calls it."""
        self._ear.hear(event_type, fl_ctx)

    def process(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        """Give back what came, having written it down."""
        self._ear.answered(shareable, fl_ctx)
        return shareable


def told(facts: Facts | str) -> str:
    """Facts as text, as they stand in a job's file; "" where nothing is told.

    Raises:
        ValueError: if a text is none of facts.

    """
    text = _FACTS.dump_json(facts).decode() if isinstance(facts, Facts) else facts
    if text:
        _FACTS.validate_json(text)
    return text


@final
class _Ear:
    """What both components do: they hear of tasks and results, and have them written down.

    Args:
        folder, facts, task, sizes, keep_error_texts: as of `RecordingWidget`.
        seat: who listens; None = the site that it runs at.
        where: the place of a filter.

    """

    def __init__(
        self,
        folder: str,
        facts: str,
        task: str,
        sizes: str,
        keep_error_texts: bool,
        seat: Party | None,
        where: Where = "server",
    ) -> None:
        self._folder = folder
        self._facts = facts
        self._task = task
        self._sizes = sizes
        self._keep_error_texts = keep_error_texts
        self._seat = seat
        self._where = where
        # Made when the run has begun: until then the component may be copied and written down.
        self._rounds: NvflareRounds | None = None
        self._scribe: Scribe | None = None
        self._last: Path | None = None
        self._is_deaf = False
        # Several sites may fetch their first task at once.
        self._beginning = threading.Lock()

    def hear(self, event_type: str, fl_ctx: FLContext) -> None:
        """Take up an event, unless it is one of a result."""
        match event_type:
            case EventType.AFTER_TASK_DATA_FILTER:
                self._try(lambda: self._asked(fl_ctx))
            case AppEventType.BEFORE_AGGREGATION:
                self._try(lambda: self._tell(NvflareRounds.finish))
            case AppEventType.AFTER_SHAREABLE_TO_LEARNABLE:
                self._try(lambda: self._became(fl_ctx))
            case EventType.END_RUN:
                self._try(self._close)
            # The simulator may run each task of a site in a process of its own, and kills it
            # when the result is sent.
            case EventType.AFTER_SEND_TASK_RESULT if self._seat != SERVER:
                self._try(self._close)

    def answered(self, result: object, fl_ctx: FLContext) -> None:
        """Take up a result."""

        def take_up() -> None:
            rounds, task = self._rounds, fl_ctx.get_prop(FLContextKey.TASK_ID)
            if rounds is not None and isinstance(result, Shareable):
                rounds.answered(str(task), result)

        self._try(take_up)

    def _asked(self, fl_ctx: FLContext) -> None:
        data = fl_ctx.get_prop(FLContextKey.TASK_DATA)
        if fl_ctx.get_prop(FLContextKey.TASK_NAME) != self._task:
            return
        if not isinstance(data, Shareable):
            return
        if self._seat == SERVER:
            who = site(fl_ctx.get_peer_context().get_identity_name())
            clients = fl_ctx.get_engine().get_clients()
            known = tuple(sorted({who, *(site(client.name) for client in clients)}))
        else:
            who = site(fl_ctx.get_identity_name())
            known = (who,)
        with self._beginning:
            if self._rounds is None:
                self._rounds = self._begin(who, data, fl_ctx)
        self._rounds.asked(str(fl_ctx.get_prop(FLContextKey.TASK_ID)), who, data, known)

    def _begin(self, who: Party, data: Shareable, fl_ctx: FLContext) -> NvflareRounds:
        facts = _FACTS.validate_json(self._facts) if self._facts else Facts(FRAMEWORK)
        folder, goes_on = placed(self._folder, fl_ctx), False
        if self._seat == SERVER:
            rounds = data.get_header(AppConstants.NUM_ROUNDS)
            if facts.rounds is None and isinstance(rounds, int) and rounds > 0:
                facts = replace(facts, rounds=rounds)
        else:
            # A site hears nothing of the model that the last round comes to.
            facts = replace(facts, rounds=None)
            folder = folder / who.removeprefix("client/") / self._where
            goes_on = self._last is not None or is_later(data)
            if goes_on:
                folder = last(folder) if self._last is None else self._last
        self._scribe = Scribe(folder, facts, goes_on=goes_on)
        if not goes_on:
            _LOG.info("overheard: this run is recorded in %s", folder)
        return NvflareRounds(
            self._scribe,
            self._seat or who,
            sizes=self._sizes,
            keep_error_texts=self._keep_error_texts,
        )

    def _became(self, fl_ctx: FLContext) -> None:
        model = fl_ctx.get_prop(AppConstants.GLOBAL_MODEL)
        if isinstance(model, dict) and self._rounds is not None:
            weights = model.get(ModelLearnableKey.WEIGHTS)
            if isinstance(weights, dict):
                self._rounds.became(dict(weights))

    def _close(self) -> None:
        rounds, scribe = self._rounds, self._scribe
        if rounds is not None and scribe is not None:
            self._rounds = self._scribe = None
            rounds.close()
            self._last, self._is_deaf = scribe.folder, scribe.stopped is not None

    def _tell(self, what: Callable[[NvflareRounds], None]) -> None:
        if self._rounds is not None:
            what(self._rounds)

    def _try(self, what: Callable[[], None]) -> None:
        """Do it; if it fails, hear nothing more, and let the run go on."""
        if self._is_deaf:
            return
        try:
            what()
        # Whatever it is, it must not reach the run.
        except Exception as error:
            self._is_deaf = True
            why = spelled(str(error)) or type(error).__name__
            _LOG.warning("overheard: the run goes on, its recording ends here: %s", why)
