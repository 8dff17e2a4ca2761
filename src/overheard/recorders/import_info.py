"""Metadata of an exported run, from `about.toml` or `about.json`."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.layout import path_exists
from overheard.archive.manifest import DefenseRecord, describe_validation_error
from overheard.archive.repeated_keys import refuse_repeated_keys
from overheard.core.errors import TranscriptError
from overheard.core.escape import is_printable
from overheard.core.mechanism import ClientSampling
from overheard.core.recipe import Rate, Recipe
from overheard.core.settings import MAX_EXAMPLES, PositiveShare, RoundNumber, Settings
from overheard.core.task import Task, TaskKind
from overheard.disk.bounded_errors import BOUNDED
from overheard.disk.reading import parse_toml, read_json_text, read_text
from overheard.recorders.exported_rounds import INFO_FILES
from overheard.recorders.exports.reply_content import (
    AS_STATED,
    ImportOptions,
    SavedModel,
    WeightCodes,
)
from overheard.recorders.replies.differences import ReplyKind
from overheard.recorders.replies.reply_reading import CountUnit, ReplyReading

MAX_TEXT_LENGTH = 1000
"""Most characters of a text, as texts are shown in reports and on terminals."""


@dataclass(frozen=True, slots=True)
class SampledClients:
    """The clients that were sampled in a round, if not all of them."""

    round: RoundNumber
    clients: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    """Metadata of one client's reply, or the reason why it is missing.

    Args:
        round: round number, as in the name of its folder.
        client: client's name, as in the name of its file.
        examples: reported number of training examples; None = as in the table `examples`.
        metrics: reported metrics, by name.
        missing: why the reply is missing; "" = there is one.
        began_in: number of the round whose broadcast model the client began from; None = of
            this round.

    """

    round: RoundNumber
    client: str
    examples: int | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    missing: str = ""
    began_in: int | None = None


@dataclass(frozen=True, slots=True)
class ImportInfo(Settings):
    """Metadata that the exported files do not contain; all of it is optional.

    Args:
        kind: content of clients' files; None = weights.
        rate: the server's learning rate, which multiplies gradients.
        saved: whether the global model in a round's folder was saved before or after the
            aggregation; None = before.
        codes: how whole-number codes in clients' files are decoded; None = there are none.
        count_unit: what the reported numbers of `examples` and `answers` count.
        framework: framework of the run, with its version.
        model: the architecture, in words.
        class_names: class names in the order of labels, or names of the outputs of a model
            without classes; requires `input_shape`.
        task_kind: what the model predicts: "classification", "multi_label" or "regression".
        input_shape: (channels, height, width), (columns,) or, for texts, (tokens,).
        vocabulary: number of tokens, including padding, if inputs are texts.
        recipe: how clients trained.
        defenses: all defenses, in the order in which they acted; () = there were none;
            None = not stated.
        rounds: number of planned rounds.
        participation: share of the clients sampled in a round (0..1).
        sampling: how the clients of a round were sampled; None = not stated.
        tensors: names of the model's parameters in its order; other tensors in the files are
            omitted. None = all floating-point tensors, in the order of the first file.
        clients: all clients, named like their files. A client without a file in a round was
            sampled and did not reply. None = only clients with a file were sampled.
        asked: the rounds in which not all of `clients` were sampled.
        examples: number of examples that each client reports in every round, by client.
        answers: metadata of single replies.

    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        strict=True, extra="forbid", allow_inf_nan=False
    )

    kind: ReplyKind | None = None
    rate: Rate | None = None
    saved: SavedModel | None = None
    codes: WeightCodes | None = None
    count_unit: CountUnit = "examples"
    framework: str = ""
    model: str = ""
    class_names: tuple[str, ...] | None = None
    input_shape: tuple[int, ...] | None = None
    vocabulary: int | None = None
    task_kind: TaskKind = "classification"
    recipe: Recipe | None = None
    defenses: tuple[DefenseRecord, ...] | None = None
    rounds: RoundNumber | None = None
    participation: PositiveShare | None = None
    sampling: ClientSampling | None = None
    tensors: tuple[str, ...] | None = None
    clients: tuple[str, ...] | None = None
    asked: tuple[SampledClients, ...] = ()
    examples: Mapping[str, int] = field(default_factory=dict)
    answers: tuple[ClientAnswer, ...] = ()

    def check_together(self) -> None:
        """Report all contradictions in one error."""
        flaws = "; ".join(_contradictions(self))
        if flaws:
            raise ValueError(flaws)

    @property
    def task(self) -> Task | None:
        """The learning task; None if unknown."""
        if self.class_names is None or self.input_shape is None:
            return None
        return Task(self.input_shape, self.class_names, self.vocabulary, self.task_kind)

    def count_examples(self, reported: int | None) -> int | None:
        """Return the number of examples behind a reported number; None if it is unknown."""
        return ReplyReading(count_unit=self.count_unit).count_examples(reported, self.recipe)


def read_import_info(
    folder: Path, options: ImportOptions = AS_STATED
) -> tuple[Path, ImportInfo]:
    """Read `about.toml` or `about.json` in this folder; empty metadata if there is neither.

    Args:
        folder: folder of the run.
        options: what the caller states in place of the file.

    Raises:
        TranscriptError: if the file is invalid, or states something else than the options.

    """
    path, info = _read_stated_info(folder)
    given = {name: value for name, value in asdict(options).items() if value is not None}
    for name, value in given.items():
        stated = getattr(info, name)
        if stated not in (None, value):
            raise TranscriptError(
                f"{path} has {name} = {stated!r}, but the import was called with {name} "
                f"{value!r}: state one of them"
            )
    try:
        return path, replace(info, **given)
    except ValueError as error:
        raise TranscriptError(f"{folder}: {printable_excerpt(str(error))}") from error


def _read_stated_info(folder: Path) -> tuple[Path, ImportInfo]:
    """Read the file alone.

    Raises:
        TranscriptError: if there are both, or the file is damaged or has unknown keys; all
            mistakes are listed, each with its location.

    """
    found = [folder / name for name in INFO_FILES if path_exists(folder / name)]
    if len(found) > 1:
        raise TranscriptError(
            f"there are both {found[0]} and {found[1].name}: keep one of them"
        )
    if not found:
        return folder / INFO_FILES[0], ImportInfo()
    path = found[0]
    try:
        if path.suffix == ".toml":
            text = read_text(path, TranscriptError, inside=folder)
            # Through JSON, where strict mode accepts an array for a tuple.
            content = json.dumps(parse_toml(text, str(path), TranscriptError)).encode()
        else:
            content = read_json_text(path, TranscriptError, inside=folder)
        refuse_repeated_keys(content)
        return path, _PARSER.validate_json(content)
    except ValidationError as error:
        raise TranscriptError(
            f"{path}: {describe_validation_error(error)}: correct the file"
        ) from error
    # TypeError: a date, which JSON does not have; UnicodeDecodeError is a ValueError.
    except (ValueError, TypeError, RecursionError) as error:
        raise TranscriptError(
            f"{path} cannot be read ({printable_excerpt(str(error))}): correct the file"
        ) from error


_PARSER: TypeAdapter[ImportInfo] = TypeAdapter(Annotated[ImportInfo, BOUNDED])


def _contradictions(about: ImportInfo) -> Iterator[str]:
    yield from _contradictions_of_replies(about)
    yield from _contradictions_of_task(about)
    if about.asked and about.clients is None:
        yield "asked requires clients: list all clients there"
    for key, names in _unique_names(about):
        repeated = sorted({name for name, count in _count_names(names).items() if count > 1})
        if repeated:
            yield f"{key} names more than once: {', '.join(repeated)}"
    for key, text in _texts(about):
        if not is_printable(text) or len(text) > MAX_TEXT_LENGTH:
            yield (
                f"{key} must be printable and have at most {MAX_TEXT_LENGTH} characters, got "
                f"{text!r}"
            )
    sizes = [*about.examples.values(), *(answer.examples or 0 for answer in about.answers)]
    for size in sizes:
        is_possible = 0 <= size < MAX_EXAMPLES
        if not is_possible or (about.count_examples(size) or 0) >= MAX_EXAMPLES:
            yield f"examples must be 0 or more, and below {MAX_EXAMPLES}, got {size}"


def _contradictions_of_task(about: ImportInfo) -> Iterator[str]:
    try:
        _ = about.task
    except ValueError as error:
        yield str(error)
    if (about.class_names is None) != (about.input_shape is None):
        yield "class_names and input_shape require each other: give both, or neither"
    if about.vocabulary is not None and about.input_shape is None:
        yield "vocabulary requires class_names and input_shape: give all, or none"
    if about.task_kind != "classification" and about.class_names is None:
        yield "task_kind requires class_names and input_shape: give all, or none"


def _contradictions_of_replies(about: ImportInfo) -> Iterator[str]:
    """Yield what contradicts itself in the statements on clients' files."""
    if about.kind == "gradients" and about.rate is None:
        yield (
            'kind = "gradients" requires rate (--rate), the learning rate of the server that '
            "multiplies a gradient: give both"
        )
    if about.rate is not None and about.kind != "gradients":
        yield 'rate requires kind = "gradients": give both, or neither'
    if about.count_unit in ("steps", "batches") and about.recipe is None:
        yield (
            f'count_unit = "{about.count_unit}" requires [recipe] with batch and epochs, to '
            "compute numbers of examples: give both"
        )
    for answer in about.answers:
        if answer.missing and (answer.examples is not None or answer.metrics):
            yield (
                f"answers says that the reply of {answer.client} in round {answer.round} is "
                "missing, and what it reports: remove one of them"
            )
    known = about.tensors
    if about.codes is not None and known is not None:
        for name in sorted(set(about.codes.names()).difference(known)):
            yield f"codes names {name}, but tensors does not"


def _unique_names(about: ImportInfo) -> Iterator[tuple[str, Iterable[str]]]:
    yield "class_names", about.class_names or ()
    yield "tensors", about.tensors or ()
    yield "clients", about.clients or ()
    yield "asked", (f"round {one.round}" for one in about.asked)
    yield "answers", (f"round {one.round} of {one.client}" for one in about.answers)


def _count_names(names: Iterable[str]) -> dict[str, int]:
    counts = dict[str, int]()
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts


def _texts(about: ImportInfo) -> Iterator[tuple[str, str]]:
    yield "framework", about.framework
    yield "model", about.model
    for name in about.class_names or ():
        yield "class_names", name
    for defense in about.defenses or ():
        yield "defenses.name", defense.name
        yield "defenses.settings", defense.settings
        yield "defenses.switched_off_by", defense.switched_off_by
    for answer in about.answers:
        yield "answers.missing", answer.missing
        for name in answer.metrics:
            yield "answers.metrics", name
