"""Experiments of Fed-BioMed: its breakpoints and its `.mpk` files of parameters."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, final

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.layout import checked_file_size, path_exists
from overheard.archive.manifest import DefenseRecord
from overheard.core.errors import TranscriptError
from overheard.core.parties import Party
from overheard.recorders.export_format import ExportFormat
from overheard.recorders.exported_rounds import natural_sort_key, parse_client_name
from overheard.recorders.exported_run import (
    ExportedAggregate,
    ExportedAnswer,
    ExportedRound,
    ExportedRun,
    ReadWeights,
    model_tensors,
    sort_answers,
)
from overheard.recorders.exports.reply_content import ImportOptions
from overheard.recorders.formats._breakpoints import (
    Breakpoint,
    ExperimentHistory,
    StoredReply,
    file_name,
    has_breakpoints,
    read_breakpoints,
)
from overheard.recorders.import_info import MAX_TEXT_LENGTH, ImportInfo, read_import_info

INITIAL_MODEL = "initial_params.mpk"
"""File of the model before the first round, which Fed-BioMed itself does not save."""

FAILED = "the node failed"

_DP_TYPES = {
    "local": ("dp_sgd", "Opacus"),
    "central": ("central_dp", "Fed-BioMed central DP"),
}
"""Name and mechanism of each type of differential privacy. Local: nodes train by DP-SGD of
Opacus. Central: they add noise to the parameters once, after training."""

_OTHER_DP = ("fedbiomed_dp", "Fed-BioMed DP")

BY_NODE = "whoever runs the node"
"""Who can switch off what the node does in its training."""


@final
class FedBioMed(ExportFormat):
    """The folder of one experiment, such as `var/experiments/Experiment_0000`."""

    name: ClassVar[str] = "fedbiomed"

    def is_of(self, folder: Path) -> bool:
        """Return whether the folder has a breakpoint, or is the folder of one."""
        return has_breakpoints(folder)

    def read(self, folder: Path, options: ImportOptions) -> ExportedRun:
        """Read an experiment; files of parameters are found by their names in the folder."""
        history = read_breakpoints(folder)
        read_weights = _weights_reader()
        info_path, info = read_import_info(folder, options)
        _refuse_facts_of_breakpoints(info, info_path)
        info = _complete_info(info, history.last)
        rounds = _known_rounds(folder, history)
        first = rounds.models[0]
        shapes, left_out = model_tensors(
            first, read_weights(first, folder, None, ()), info, info_path
        )
        counted = range(len(rounds.numbers))
        replies = [reply for index in counted for reply in rounds.read(index).answers]
        for path in (*rounds.models, *(one.path for one in replies if one.path is not None)):
            checked_file_size(path, folder)
        return ExportedRun(
            folder,
            info,
            info_path,
            len(rounds.models),
            rounds.read,
            tuple(sorted(rounds.clients(), key=natural_sort_key)),
            sum(reply.path is not None for reply in replies),
            sum(reply.path is None for reply in replies),
            shapes,
            left_out,
            is_closed=True,
            read_weights=read_weights,
            notes=tuple(_notes(history, rounds)),
        )


@final
@dataclass(frozen=True, slots=True)
class _Rounds:
    """The rounds of which the broadcast is known, and the closing one.

    Args:
        folder: folder of the experiment.
        history: what its breakpoints tell.
        numbers: the rounds with replies, as Fed-BioMed counts.
        models: file of the broadcast model of each, then of the model after the last.

    """

    folder: Path
    history: ExperimentHistory
    numbers: tuple[int, ...]
    models: tuple[Path, ...]

    def clients(self) -> frozenset[Party]:
        """Return all clients that were asked."""
        return frozenset(
            self._client(node) for number in self.numbers for node in self._nodes(number)
        )

    def read(self, index: int) -> ExportedRound:
        """Return one round, counted from 0."""
        if index == len(self.numbers):
            return ExportedRound(self._number(index), self.models[index], self.clients(), ())
        number = self._number(index)
        nodes = self._nodes(number)
        clear = {node: reply for node, reply in nodes.items() if not reply.encrypted}
        return ExportedRound(
            number,
            self.models[index],
            frozenset(map(self._client, nodes)),
            sort_answers(self._answer(node, reply) for node, reply in clear.items()),
            dict(_settings(self.history.last.training_args)),
            self._aggregate(number),
        )

    def has_masked(self, number: int) -> bool:
        """Return whether secure aggregation masked a reply of a round."""
        return any(reply.encrypted for reply in self._nodes(number).values())

    def _number(self, index: int) -> int:
        return self.numbers[0] + index

    def _aggregate(self, number: int) -> ExportedAggregate | None:
        """Return the mean of masked replies; None if there are none, or it cannot be told."""
        masked = {node: reply for node, reply in self._nodes(number).items() if reply.encrypted}
        # With an optimizer of the server, the new model is not the old one plus the mean.
        if not masked or self.history.last.agg_optimizer is not None:
            return None
        sizes = [reply.sample_size for reply in masked.values()]
        known = [size for size in sizes if size is not None]
        return ExportedAggregate(
            self.history.models[number],
            frozenset(map(self._client, masked)),
            sum(known) if len(known) == len(sizes) else None,
        )

    def _nodes(self, number: int) -> Mapping[str, StoredReply]:
        return self.history.replies[number]

    def _client(self, node: str) -> Party:
        return parse_client_name(node, self.history.path)

    def _answer(self, node: str, reply: StoredReply) -> ExportedAnswer:
        client = self._client(node)
        if not reply.success or reply.params_path is None:
            reason = printable_excerpt(reply.msg)[:MAX_TEXT_LENGTH] or FAILED
            return ExportedAnswer(client, None, reason)
        path = self.folder / file_name(reply.params_path, self.history.path)
        return ExportedAnswer(client, path, examples=reply.sample_size, metrics=reply.timing)


def _weights_reader() -> ReadWeights:
    try:
        from overheard.recorders.formats._messagepack import read_messagepack_weights
    except ModuleNotFoundError as error:
        raise TranscriptError(
            "reading .mpk files needs the package msgpack: install overheard[fedbiomed]"
        ) from error
    return read_messagepack_weights


def _known_rounds(folder: Path, history: ExperimentHistory) -> _Rounds:
    """Return the rounds of which the broadcast model is known."""
    models = {number + 1: path for number, path in history.models.items()}
    if path_exists(folder / INITIAL_MODEL):
        models[0] = folder / INITIAL_MODEL
    numbers = tuple(number for number in history.replies if number in models)
    if not numbers:
        raise TranscriptError(
            f"{folder} has replies of one round only, and not the model that was sent for it: "
            f"add that model as {INITIAL_MODEL}, or run a further round"
        )
    files = tuple(models[number] for number in (*numbers, numbers[-1] + 1))
    return _Rounds(folder, history, numbers, files)


def _refuse_facts_of_breakpoints(info: ImportInfo, path: Path) -> None:
    given = {
        "clients": info.clients is not None,
        "asked": bool(info.asked),
        "examples": bool(info.examples),
        "answers": bool(info.answers),
        "kind": info.kind is not None,
        "saved": info.saved is not None,
        "codes": info.codes is not None,
        "count_unit": info.count_unit != "examples",
    }
    for key in (key for key, is_given in given.items() if is_given):
        raise TranscriptError(f"{path}: {key} is stated by the breakpoints: remove it")


def _complete_info(info: ImportInfo, last: Breakpoint) -> ImportInfo:
    """Return the metadata with what the breakpoints state, where a user states nothing."""
    version = last.breakpoint_version and f", breakpoint version {last.breakpoint_version}"
    return replace(
        info,
        framework=info.framework or f"Fed-BioMed{version}",
        model=info.model or last.training_plan_class_name,
        defenses=info.defenses or tuple(_defenses(last)),
    )


def _defenses(last: Breakpoint) -> Iterator[DefenseRecord]:
    stated = last.training_args.get("dp_args")
    if isinstance(stated, dict):
        settings = ", ".join(f"{name}={text}" for name, text in _settings(stated))
        name, mechanism = _DP_TYPES.get(str(stated.get("type")), _OTHER_DP)
        yield DefenseRecord(name, f"{mechanism}({settings})", "client", BY_NODE)
    if any(
        reply.encrypted for nodes in last.training_replies.values() for reply in nodes.values()
    ):
        # The setting "force_secure_aggregation" makes a node refuse anything else.
        yield DefenseRecord(
            "secure_aggregation", "secure aggregation of Fed-BioMed", "protocol", BY_NODE
        )


# Any: settings are read from JSON.
def _settings(stated: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the names and texts of the numbers and texts in settings, and in tables of them."""
    for name, value in stated.items():
        if isinstance(value, dict) and not prefix:
            yield from _settings(value, f"{name}.")
        elif isinstance(value, str | int | float):
            text = str(value)
            if (prefix + name + text).isprintable() and len(text) <= MAX_TEXT_LENGTH:
                yield prefix + name, text


def _notes(history: ExperimentHistory, rounds: _Rounds) -> Iterator[str]:
    if rounds.numbers[0] > 0:
        yield (
            f"Fed-BioMed's rounds before round {rounds.numbers[0]} were left out: the "
            f"breakpoints do not have the model that was sent first. Add it as {INITIAL_MODEL}."
        )
    masked = [number for number in rounds.numbers if rounds.has_masked(number)]
    if masked:
        yield (
            f"Secure aggregation masked the replies of {len(masked)} rounds. Their numbers of "
            "examples and times, which Fed-BioMed sends in clear, were left out."
        )
    if history.last.agg_optimizer is not None:
        yield (
            "The server has an optimizer of its own. What it exchanges with nodes was left "
            "out, and so was the mean behind secure aggregation."
        )
    if history.last.aggregator.get("class") == "Scaffold":
        yield "The corrections that Scaffold sends to nodes were left out."
