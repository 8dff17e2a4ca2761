"""What a user tells of an exported run beside its files."""

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from overheard.archive.bodies import MOST_EXAMPLES
from overheard.archive.layout import is_there, read_inside
from overheard.archive.manifest import DefenseRecord, told
from overheard.archive.spelled import spelled
from overheard.core.errors import TranscriptError
from overheard.core.recipe import Recipe
from overheard.core.task import Task
from overheard.recorders.exported_rounds import ABOUT

LONGEST_TEXT = 1000
"""Characters of a text at most; it is shown in reports and on terminals."""


@dataclass(frozen=True, slots=True)
class AskedClients:
    """Who was asked for an answer in a round, where that was not everyone."""

    round: int
    clients: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    """What travelled beside the weights of one answer, or why none came.

    Args:
        round: as its folder is called.
        client: as its file is called.
        examples: how many it said it trained on; None = as in the table `examples`.
        metrics: in clear, by name.
        missing: why no answer came; "" = one did.

    """

    round: int
    client: str
    examples: int | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    missing: str = ""


@dataclass(frozen=True, slots=True)
class About:
    """All that the files themselves do not say; each may be left out.

    Args:
        framework: that ran it, with its version.
        model: the architecture, in words.
        class_names: in order of the labels; goes with `input_shape`.
        input_shape: (channels, height, width), (columns,) or, for texts, (tokens,).
        vocabulary: number of tokens, padding included, where inputs are texts.
        recipe: how clients trained.
        defenses: in the order in which they acted.
        rounds: how many were planned.
        participation: share of the clients asked in a round (0..1).
        tensors: names of the model's parameters in its order; what else stands in the files
            is left out. None = all that are floating-point numbers, in the first file's order.
        clients: who takes part, as the files are called; whoever of them has no file in a round
            was asked and did not answer. None = whoever has a file was asked.
        asked: the rounds in which not all of `clients` were asked.
        examples: how many examples a client says it has in each round, by client.
        answers: what one answer says besides.

    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        strict=True, extra="forbid", allow_inf_nan=False
    )

    framework: str = ""
    model: str = ""
    class_names: tuple[str, ...] | None = None
    input_shape: tuple[int, ...] | None = None
    vocabulary: int | None = None
    recipe: Recipe | None = None
    defenses: tuple[DefenseRecord, ...] = ()
    rounds: int | None = None
    participation: float | None = None
    tensors: tuple[str, ...] | None = None
    clients: tuple[str, ...] | None = None
    asked: tuple[AskedClients, ...] = ()
    examples: Mapping[str, int] = field(default_factory=dict)
    answers: tuple[ClientAnswer, ...] = ()

    def __post_init__(self) -> None:
        """Refuse all contradictions at once."""
        flaws = "; ".join(_flaws(self))
        if flaws:
            raise ValueError(flaws)

    @property
    def task(self) -> Task | None:
        """What is learned; None where it is not told."""
        if self.class_names is None or self.input_shape is None:
            return None
        return Task(self.input_shape, self.class_names, self.vocabulary)


def read_about(folder: Path) -> tuple[Path, About]:
    """What `about.toml` or `about.json` in this folder says, and the file; none says nothing.

    Raises:
        TranscriptError: if there are both, or the file is damaged or holds what is not known;
            all mistakes are told at once, each with its place.

    """
    there = [folder / name for name in ABOUT if is_there(folder / name)]
    if len(there) > 1:
        raise TranscriptError(f"{there[0]} and {there[1].name} say the same: keep one of them")
    if not there:
        return folder / ABOUT[0], About()
    path = there[0]
    content = read_inside(path, folder)
    try:
        if path.suffix == ".toml":
            # Through JSON, as there an array may stand for a tuple and yet all else is strict.
            content = json.dumps(tomllib.loads(content.decode("utf-8"))).encode()
        return path, _PARSER.validate_json(content)
    except ValidationError as error:
        raise TranscriptError(f"{path}: {told(error)}: mend it there") from error
    # TypeError: a date, which JSON has none of; UnicodeDecodeError is a ValueError.
    except (ValueError, TypeError, RecursionError) as error:
        raise TranscriptError(
            f"{path} cannot be read ({spelled(str(error))}): mend it there"
        ) from error


_PARSER = TypeAdapter(About)


def _flaws(about: About) -> Iterator[str]:
    if (about.class_names is None) != (about.input_shape is None):
        yield "class_names and input_shape go together: give both, or neither"
    if about.vocabulary is not None and about.input_shape is None:
        yield "vocabulary goes with class_names and input_shape: give all, or none"
    if about.rounds is not None and about.rounds < 0:
        yield f"rounds is 0 or more, got {about.rounds}"
    if about.participation is not None and not 0 < about.participation <= 1:
        yield f"participation lies above 0 and up to 1, got {about.participation}"
    if about.asked and about.clients is None:
        yield "asked goes with clients: name all who take part, too"
    for what, names in _named_once(about):
        repeated = sorted({name for name, count in _counted(names).items() if count > 1})
        if repeated:
            yield f"{what} names more than once: {', '.join(repeated)}"
    for what, text in _texts(about):
        if not text.isprintable() or len(text) > LONGEST_TEXT:
            yield f"{what} must print and have {LONGEST_TEXT} characters at most, is {text!r}"
    sizes = [*about.examples.values(), *(answer.examples or 0 for answer in about.answers)]
    for size in sizes:
        if not 0 <= size < MOST_EXAMPLES:
            yield f"examples are 0 or more, got {size}"


def _named_once(about: About) -> Iterator[tuple[str, Iterable[str]]]:
    yield "class_names", about.class_names or ()
    yield "tensors", about.tensors or ()
    yield "clients", about.clients or ()
    yield "asked", (f"round {one.round}" for one in about.asked)
    yield "answers", (f"round {one.round} of {one.client}" for one in about.answers)


def _counted(names: Iterable[str]) -> dict[str, int]:
    counts = dict[str, int]()
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts


def _texts(about: About) -> Iterator[tuple[str, str]]:
    yield "framework", about.framework
    yield "model", about.model
    for name in about.class_names or ():
        yield "class_names", name
    for defense in about.defenses:
        yield "defenses.name", defense.name
        yield "defenses.settings", defense.settings
        yield "defenses.switched_off_by", defense.switched_off_by
    for answer in about.answers:
        yield "answers.missing", answer.missing
        for name in answer.metrics:
            yield "answers.metrics", name
