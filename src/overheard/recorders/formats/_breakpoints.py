"""The breakpoints of an experiment of Fed-BioMed, from their untrusted JSON files.

After each round, `fedbiomed.researcher` (6.4) writes `breakpoint_N/breakpoint_N.json`. It names
the file of each reply and of each model after a round, of all rounds so far or of the last one.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.layout import path_exists
from overheard.archive.manifest import describe_validation_error
from overheard.core.errors import TranscriptError
from overheard.core.settings import MAX_EXAMPLES
from overheard.disk.bounded_errors import BOUNDED
from overheard.disk.reading import read_json_text
from overheard.recorders.import_info import MAX_TEXT_LENGTH

_FOLDER = re.compile(r"breakpoint_([0-9]{1,9})")
_FILE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,199}\.mpk")
_ROUND = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class StoredModel:
    """The place of a model's parameters, as the researcher's machine names it."""

    params_path: str


@dataclass(frozen=True, slots=True)
class StoredReply:
    """A node's reply in a round.

    Args:
        success: whether the node trained.
        params_path: place of its parameters on the researcher's machine; None if it failed.
        sample_size: its number of training examples.
        encrypted: whether secure aggregation masks its parameters.
        timing: seconds of its training, by the node's clocks, and of the whole request, by the
            researcher's.
        msg: what the node says, such as the reason of a failure.

    """

    success: bool
    params_path: str | None = None
    sample_size: int | None = None
    encrypted: bool = False
    timing: dict[str, float] = field(default_factory=dict)
    msg: str = ""


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """The part of a breakpoint that an import reads.

    Args:
        training_replies: by round and node.
        aggregated_params: the model after each round.
        training_args: the settings of the training, which every node receives.
        aggregator: the class that averages the replies, with its settings.
        agg_optimizer: file of the server's optimizer; None = the mean is the new model.
        training_plan_class_name: class of the training plan.
        breakpoint_version: version of the format.

    """

    # Other keys are ignored: they state nothing that a transcript holds.
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        strict=True, extra="ignore", allow_inf_nan=False
    )

    training_replies: dict[str, dict[str, StoredReply]]
    aggregated_params: dict[str, StoredModel]
    # Any: settings of any kind, of which few are used, and checked then.
    training_args: dict[str, Any] = field(default_factory=dict)
    aggregator: dict[str, Any] = field(default_factory=dict)
    agg_optimizer: str | None = None
    training_plan_class_name: str = ""
    breakpoint_version: str = ""


_PARSER: TypeAdapter[Breakpoint] = TypeAdapter(Annotated[Breakpoint, BOUNDED])


@dataclass(frozen=True, slots=True)
class ExperimentHistory:
    """What the breakpoints of an experiment tell of its rounds.

    Args:
        last: the last breakpoint.
        path: its file, for error messages.
        replies: by round, in order, then by node.
        models: by round, the file of the model after it.

    """

    last: Breakpoint
    path: Path
    replies: Mapping[int, Mapping[str, StoredReply]]
    models: Mapping[int, Path]


def has_breakpoints(folder: Path) -> bool:
    """Return whether a folder has a breakpoint, or is the folder of one."""
    return bool(_FOLDER.fullmatch(folder.name)) or bool(_list_breakpoints(folder))


def read_breakpoints(folder: Path) -> ExperimentHistory:
    """Read the breakpoints of an experiment: the last, and earlier ones as needed.

    Raises:
        TranscriptError: if one is damaged, or a round is missing; the message says what to do.

    """
    paths = _list_breakpoints(folder)
    if not paths:
        raise TranscriptError(
            f"{folder} is the folder of one breakpoint: name the folder of the experiment, "
            "which contains it"
        )
    last: Breakpoint | None = None
    replies = dict[int, Mapping[str, StoredReply]]()
    models = dict[int, Path]()
    for number, path in sorted(paths.items(), reverse=True):
        # An experiment that keeps its history has all rounds in its last breakpoint.
        if number in replies and number in models and 0 in replies:
            continue
        read = _read_breakpoint(path, folder)
        last = last or read
        for text, nodes in read.training_replies.items():
            replies.setdefault(_parse_round(text, path), nodes)
        for text, model in read.aggregated_params.items():
            file = path.parent / file_name(model.params_path, path)
            models.setdefault(_parse_round(text, path), file)
    assert last is not None, "at least one breakpoint is read"
    path = paths[max(paths)]
    if not replies:
        raise TranscriptError(f"{path} has no reply of any node: run a round first")
    rounds = sorted(replies)
    # One after each round, since a hostile file may name rounds that are far apart.
    gaps = [one + 1 for one, after in pairwise(rounds) if after != one + 1]
    lost = [one for one in rounds if one not in models]
    if gaps or lost:
        raise TranscriptError(
            f"{folder}: no breakpoint has the replies or the model of round "
            f"{min(gaps + lost)}: copy the breakpoints of all rounds, or set "
            "retain_full_history before an experiment"
        )
    return ExperimentHistory(last, path, {one: replies[one] for one in rounds}, models)


def file_name(place: str, breakpoint_path: Path) -> str:
    """Return the file name of a place on the researcher's machine.

    Raises:
        TranscriptError: if it is no plain name of a file of parameters.

    """
    name = re.split(r"[/\\\\]", place)[-1]
    if not _FILE_NAME.fullmatch(name):
        raise TranscriptError(
            f"{breakpoint_path} names the file {printable_excerpt(repr(place))}, which is no "
            "name of a .mpk file: copy the breakpoint again"
        )
    return name


def _list_breakpoints(folder: Path) -> dict[int, Path]:
    """Return the file of each breakpoint by its number."""
    try:
        found = [(entry, _FOLDER.fullmatch(entry.name)) for entry in folder.iterdir()]
    except OSError:
        return {}
    files = {
        int(match[1]): entry / f"{entry.name}.json"
        for entry, match in found
        if match is not None
    }
    return {number: path for number, path in files.items() if path_exists(path)}


def _read_breakpoint(path: Path, folder: Path) -> Breakpoint:
    try:
        read = _PARSER.validate_json(read_json_text(path, TranscriptError, inside=folder))
    except ValidationError as error:
        raise TranscriptError(
            f"{path}: {describe_validation_error(error)}: copy the breakpoint again"
        ) from error
    for flaw in _flaws(read):
        raise TranscriptError(f"{path}: {printable_excerpt(flaw)}: copy the breakpoint again")
    return read


def _flaws(read: Breakpoint) -> Iterator[str]:
    """Yield what is out of range or cannot be shown."""
    for nodes in read.training_replies.values():
        for node, reply in nodes.items():
            if not 0 <= (reply.sample_size or 0) < MAX_EXAMPLES:
                yield f"{node!r} reports {reply.sample_size} examples"
            if not reply.success or reply.params_path is not None:
                continue
            yield f"the reply of {node!r} names no file of parameters"
    texts = [read.training_plan_class_name, read.breakpoint_version]
    texts += [
        name
        for nodes in read.training_replies.values()
        for reply in nodes.values()
        for name in reply.timing
    ]
    for text in texts:
        if not text.isprintable() or len(text) > MAX_TEXT_LENGTH:
            yield f"{text!r} is not printable or has more than {MAX_TEXT_LENGTH} characters"


def _parse_round(text: str, path: Path) -> int:
    if not _ROUND.fullmatch(text):
        raise TranscriptError(
            f"{path} names the round {printable_excerpt(repr(text))}: copy the breakpoint again"
        )
    return int(text)
