"""Who sent what in a run that another framework saved, told from names and `about`."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from overheard.archive.spelled import spelled
from overheard.archive.weights import Shapes, shapes_of
from overheard.core.errors import TranscriptError
from overheard.core.messages import NO_METRICS
from overheard.core.parties import Party
from overheard.recorders.about import About, ClientAnswer, read_about
from overheard.recorders.exported_rounds import (
    RoundFiles,
    client_called,
    exported_rounds,
    files_of,
    in_order,
    number_of,
)
from overheard.recorders.exported_weights import read_exported

NO_FILE = "no file of an answer was saved"
"""Why a client counts as one that did not answer, where nothing else is told."""

MOST_FLAWS = 12
"""Told of an `about` at most; how many more there are is counted."""


@dataclass(frozen=True, slots=True)
class ExportedPart:
    """One client's part in a round.

    Args:
        who: the client.
        path: of its weights; None = no answer came.
        missing: why none came.
        examples: how many it said it trained on; None = it did not say.
        metrics: that it sent in clear.

    """

    who: Party
    path: Path | None
    missing: str = ""
    examples: int | None = None
    metrics: Mapping[str, float] = field(default_factory=lambda: NO_METRICS)


@dataclass(frozen=True, slots=True)
class ExportedRound:
    """One round as it went.

    Args:
        number: as its folder is called.
        model: the file of the model that was sent out.
        readers: to whom it was sent.
        parts: of each client that was asked, those without an answer first.

    """

    number: int
    model: Path
    readers: frozenset[Party]
    parts: tuple[ExportedPart, ...]


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """A run in a folder; its tensors stay there.

    Args:
        folder: which holds it.
        about: what its user tells of it.
        place: the file where that is told, for errors.
        rounds: the folder of each, in order.
        clients: all who take part, in order of their names.
        updates: how many answers came.
        missing: how many did not.
        shapes: of the model's tensors, in its order.
        left_out: the files' other tensors.
        is_closed: whether the last round holds the final model and no answers.

    """

    folder: Path
    about: About
    place: Path
    rounds: tuple[Path, ...]
    clients: tuple[Party, ...]
    updates: int
    missing: int
    shapes: Shapes
    left_out: tuple[str, ...]
    is_closed: bool
    _told: "_Told"

    @property
    def messages(self) -> int:
        """How many there are: the models that were sent out and what came of each."""
        return len(self.rounds) + self.updates + self.missing

    def round(self, index: int) -> ExportedRound:
        """One round, counted from 0; reads the names of its files."""
        files = files_of(self.rounds[index])
        if self.is_closed and index == len(self.rounds) - 1:
            return ExportedRound(files.number, files.model, frozenset(self.clients), ())
        parts = self._told.parts(files)
        return ExportedRound(
            files.number, files.model, frozenset(part.who for part in parts), parts
        )


def exported_run(folder: Path) -> ExportedRun:
    """The run in this folder; reads all names, `about`, and the first model.

    Raises:
        TranscriptError: naming what cannot be, and the mend.

    """
    rounds = exported_rounds(folder)
    place, about = read_about(folder)
    told = _told(about, place)
    # The names of one round at a time: a long run of many clients has millions of files.
    clients, is_closed = set(told.clients or ()), False
    for round_ in rounds:
        files = files_of(round_)
        clients.update(files.answers)
        is_closed = not files.answers
    _refuse_flaws(place, _flaws(told, rounds, is_closed, clients))
    updates = missing = 0
    for round_ in rounds[: len(rounds) - is_closed]:
        parts = told.parts(files_of(round_))
        updates += sum(part.path is not None for part in parts)
        missing += sum(part.path is None for part in parts)
    shapes, left_out = _tensors(folder, files_of(rounds[0]).model, about, place)
    return ExportedRun(
        folder,
        about,
        place,
        rounds,
        tuple(sorted(clients, key=in_order)),
        updates,
        missing,
        shapes,
        left_out,
        is_closed,
        told,
    )


@dataclass(frozen=True, slots=True)
class _Told:
    """What `about` says of clients, under the names of parties."""

    clients: tuple[Party, ...] | None
    asked: Mapping[int, frozenset[Party]]
    sizes: Mapping[Party, int]
    answers: Mapping[int, Mapping[Party, ClientAnswer]]

    def of(self, number: int) -> Mapping[Party, ClientAnswer]:
        return self.answers.get(number, {})

    def parts(self, files: RoundFiles) -> tuple[ExportedPart, ...]:
        everyone = self.asked.get(files.number, frozenset(self.clients or ()))
        names = everyone | files.answers.keys() | self.of(files.number).keys()
        parts = [self._part(files, who) for who in names]
        return tuple(
            sorted(parts, key=lambda part: (part.path is not None, in_order(part.who)))
        )

    def _part(self, files: RoundFiles, who: Party) -> ExportedPart:
        path, answer = files.answers.get(who), self.of(files.number).get(who)
        if path is None:
            return ExportedPart(
                who, None, NO_FILE if answer is None else answer.missing or NO_FILE
            )
        size = self.sizes.get(who)
        if answer is None:
            return ExportedPart(who, path, examples=size)
        told = size if answer.examples is None else answer.examples
        return ExportedPart(who, path, examples=told, metrics=answer.metrics)


def _told(about: About, place: Path) -> _Told:
    called = partial(client_called, place=place)
    clients = None if about.clients is None else tuple(map(called, about.clients))
    answers = defaultdict[int, dict[Party, ClientAnswer]](dict)
    for answer in about.answers:
        answers[answer.round][called(answer.client)] = answer
    return _Told(
        clients,
        {one.round: frozenset(map(called, one.clients)) for one in about.asked},
        {called(name): size for name, size in about.examples.items()},
        dict(answers),
    )


def _flaws(
    told: _Told, rounds: Sequence[Path], is_closed: bool, clients: set[Party]
) -> Iterator[str]:
    """Where `about` and the files contradict each other."""
    numbers = {number_of(round_): round_ for round_ in rounds[: len(rounds) - is_closed]}
    known = clients if told.clients is None else set(told.clients)
    for who in sorted(told.sizes.keys() - clients):
        yield f"examples names {who}, which has no file in any round"
    for number, names in told.asked.items():
        if number not in numbers:
            yield f"asked names round {number}, in which nobody answers"
        for who in sorted(names - known):
            yield f"asked names {who} in round {number}, and clients does not"
    for number, answers in told.answers.items():
        if number not in numbers:
            yield f"answers names round {number}, in which nobody answers"
        for who in sorted(answers.keys() - known):
            yield f"answers names {who} in round {number}, who does not take part"
    for round_ in numbers.values():
        yield from _flaws_of_round(told, files_of(round_), known)


def _flaws_of_round(told: _Told, files: RoundFiles, known: set[Party]) -> Iterator[str]:
    answered, there = files.answers.keys(), f"has a file in round {files.number}"
    for who in sorted(answered - known):
        yield f"{who} {there}, and clients does not name it"
    for who in sorted(answered - told.asked.get(files.number, answered)):
        yield f"{who} {there}, and asked does not name it"
    for who, answer in told.of(files.number).items():
        if answer.missing and who in answered:
            yield f"answers says why {who} is missing, and it {there}"
        elif not answer.missing and who not in answered:
            yield f"answers tells of {who} in round {files.number}, which has no file: say why"


def _refuse_flaws(place: Path, flaws: Iterator[str]) -> None:
    found = list(flaws)
    if not found:
        return
    more = [f"and {len(found) - MOST_FLAWS} more"] if len(found) > MOST_FLAWS else []
    raise TranscriptError(
        f"{place} and the files contradict each other: {'; '.join(found[:MOST_FLAWS] + more)}: "
        "mend the one or the other"
    )


def _tensors(
    folder: Path, model: Path, about: About, place: Path
) -> tuple[Shapes, tuple[str, ...]]:
    """The model's tensors in its order, and the others that stand in its file."""
    exported = read_exported(model, folder)
    shapes = shapes_of(exported.weights)
    if about.tensors is None:
        return shapes, exported.left_out
    strange = [name for name in about.tensors if name not in shapes]
    if strange or not about.tensors:
        raise TranscriptError(
            f"{place}: tensors names {spelled(', '.join(strange)) or 'none'}, and {model} "
            f"holds the tensors {spelled(', '.join(shapes))}: name some of them"
        )
    rest = tuple(name for name in shapes if name not in about.tensors)
    return {name: shapes[name] for name in about.tensors}, (*exported.left_out, *rest)
