"""A run that another framework saved, from its file names and `about`."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.weights import Shapes, tensor_shapes
from overheard.core.errors import TranscriptError
from overheard.core.messages import NO_CONFIG, NO_METRICS
from overheard.core.parties import Party
from overheard.recorders.exported_rounds import (
    NAME_FORM,
    RoundFiles,
    is_other_form,
    list_round_files,
    list_round_folders,
    natural_sort_key,
    parse_client_name,
    parse_round_number,
)
from overheard.recorders.exported_weights import ExportedWeights, read_exported_weights
from overheard.recorders.exports.reply_content import AS_STATED, ImportOptions, SavedModel
from overheard.recorders.import_info import ClientAnswer, ImportInfo, read_import_info

NO_FILE = "no file of an answer was saved"
"""Default reason for a missing reply; stored in transcripts."""

ADD_FIRST_MODEL = (
    "number the rounds with replies from 1, and add that model as the only file of round-0000"
)

ONLY_MODELS = (
    "No client's weights were found, only global models, so nothing can be asked about single "
    "clients. The change from one global model to the next is the mean of all clients' "
    "updates, if the server does nothing else. Whoever receives both models reads it: any "
    "client, also one that joins late."
)
"""What an import says of a run of which only global models were saved."""

MAX_CONTRADICTIONS = 12
"""Most contradictions that an error lists; of more it gives the number."""


@dataclass(frozen=True, slots=True)
class ExportedAnswer:
    """One client's reply in a round, or a missing reply.

    Args:
        client: the client.
        path: file of its weights; None = the reply is missing.
        missing_reason: why the reply is missing.
        examples: reported number of training examples; None = not reported.
        metrics: reported metrics.
        start: file of the model that it began from; None = the broadcast model of the round.

    """

    client: Party
    path: Path | None
    missing_reason: str = ""
    examples: int | None = None
    metrics: Mapping[str, float] = field(default_factory=lambda: NO_METRICS)
    start: Path | None = None


@dataclass(frozen=True, slots=True)
class ExportedAggregate:
    """The mean of a round's replies, where single replies cannot be read.

    Args:
        path: file of the model after the round, which is the broadcast model plus the mean.
        cohort: the clients behind it.
        examples: their number of examples; None = unknown.

    """

    path: Path
    cohort: frozenset[Party]
    examples: int | None


@dataclass(frozen=True, slots=True)
class ExportedRound:
    """One round of an exported run.

    Args:
        number: round number, as the framework counts.
        model: file of the broadcast model.
        readers: receivers of the broadcast.
        answers: the replies of all sampled clients, missing ones first.
        config: what was broadcast beside the model, by name, as text.
        aggregate: their mean, if it alone can be read.

    """

    number: int
    model: Path
    readers: frozenset[Party]
    answers: tuple[ExportedAnswer, ...]
    config: Mapping[str, str] = field(default_factory=lambda: NO_CONFIG)
    aggregate: ExportedAggregate | None = None


ReadWeights = Callable[[Path, Path, Shapes | None, tuple[str, ...]], ExportedWeights]
"""Reads the tensors of a file, as `read_exported_weights` does."""


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """An exported run in a folder; its tensors are not loaded.

    Args:
        folder: folder of the run.
        info: its metadata.
        info_path: file of the metadata, for error messages.
        round_count: number of rounds, with the closing one.
        round: returns one round, counted from 0; reads file names only.
        clients: all clients, sorted by name.
        update_count: number of replies.
        missing_count: number of missing replies.
        shapes: shapes of the model's tensors, in its order.
        left_out: names of the files' other tensors.
        is_closed: whether the last round has only the final model, and no replies.
        read_weights: reads one of its files.
        notes: sentences on what the import leaves out.

    """

    folder: Path
    info: ImportInfo
    info_path: Path
    round_count: int
    round: Callable[[int], ExportedRound]
    clients: tuple[Party, ...]
    update_count: int
    missing_count: int
    shapes: Shapes
    left_out: tuple[str, ...]
    is_closed: bool
    read_weights: ReadWeights = read_exported_weights
    notes: tuple[str, ...] = ()

    @property
    def message_count(self) -> int:
        """Number of messages: broadcasts, replies and missing replies."""
        return self.round_count + self.update_count + self.missing_count


def read_exported_run(folder: Path, options: ImportOptions = AS_STATED) -> ExportedRun:
    """Read a run's file names, `about` and its first model.

    Args:
        folder: folder with a subfolder for each round.
        options: what the caller states about it.

    Raises:
        TranscriptError: if something is invalid; the message says what to do.

    """
    folders = list_round_folders(folder)
    info_path, about = read_import_info(folder, options)
    client_info = _parse_client_info(about, info_path)
    # One round at a time, as a long run with many clients has millions of files.
    clients, models, rewritten = set(client_info.clients or ()), list[Path](), set[Party]()
    with_files = set[Path]()
    for round_ in folders:
        files = list_round_files(round_)
        models.append(files.model)
        clients.update(files.answers)
        if files.answers:
            with_files.add(round_)
        rewritten.update(one for one, path in files.answers.items() if is_other_form(path.stem))
    rounds = _arrange_rounds(folder, folders, models, with_files, about.saved)
    _refuse_contradictions(info_path, _contradictions(client_info, rounds, clients))
    updates = missing = 0
    for index in range(len(rounds.folders)):
        answers = client_info.round_answers(rounds, index)
        updates += sum(answer.path is not None for answer in answers)
        missing += sum(answer.path is None for answer in answers)
    model = rounds.models[0]
    shapes, left_out = model_tensors(
        model, read_exported_weights(model, folder), about, info_path
    )
    _refuse_other_codes(about, shapes, info_path)
    return ExportedRun(
        folder,
        about,
        info_path,
        len(rounds.models),
        partial(_read_round, rounds, client_info, frozenset(clients)),
        tuple(sorted(clients, key=natural_sort_key)),
        updates,
        missing,
        shapes,
        left_out,
        rounds.is_closed,
        notes=tuple(_notes(rounds, about, rewritten)),
    )


@dataclass(frozen=True, slots=True)
class _Rounds:
    """The rounds that are imported.

    Args:
        folders: their folders, without that of a closing model.
        models: file of the broadcast model of each, and of the final model, if there is one.
        left_out: folder of a first round whose broadcast model is unknown, if there is one.
        has_files: whether any client has a file.

    """

    folders: tuple[Path, ...]
    models: tuple[Path, ...]
    left_out: Path | None
    has_files: bool

    @property
    def is_closed(self) -> bool:
        return len(self.models) > len(self.folders)

    def model_of(self, number: int) -> Path | None:
        """Return the file of the broadcast model of a round; None if it is unknown."""
        models = zip(self.folders, self.models, strict=False)
        return next((model for one, model in models if parse_round_number(one) == number), None)


def _arrange_rounds(
    folder: Path,
    folders: Sequence[Path],
    models: Sequence[Path],
    with_files: Collection[Path],
    saved: SavedModel | None,
) -> _Rounds:
    """Return the rounds with the model that was broadcast in each.

    Args:
        folder: folder of the run.
        folders: folder of each round.
        models: global model in each.
        with_files: those with a file of a client.
        saved: whether these models were saved before or after the aggregation.

    Raises:
        TranscriptError: if the broadcast model of no round is known.

    """
    has_files = bool(with_files)
    if saved != "after":
        is_closed = folders[-1] not in with_files
        kept = folders[: len(folders) - is_closed]
        return _Rounds(tuple(kept), tuple(models), None, has_files)
    # The model in the folder of a round was broadcast in the next round.
    if len(folders) < 2:
        raise TranscriptError(
            f'{folder} has the model after one round only (saved = "after"), and not the model '
            f"that was sent in it: {ADD_FIRST_MODEL}"
        )
    left_out = folders[0] if folders[0] in with_files else None
    return _Rounds(tuple(folders[1:]), tuple(models), left_out, has_files)


def _refuse_other_codes(about: ImportInfo, shapes: Shapes, info_path: Path) -> None:
    unknown = () if about.codes is None else set(about.codes.names()).difference(shapes)
    if unknown:
        raise TranscriptError(
            f"{info_path}: codes names {printable_excerpt(', '.join(sorted(unknown)))}, which "
            "is no tensor of the model: correct it"
        )


def _notes(rounds: _Rounds, about: ImportInfo, rewritten: set[Party]) -> Iterator[str]:
    if rewritten:
        yield (
            f"Names of files were brought to one form of Unicode ({NAME_FORM}): they are "
            f"{printable_excerpt(', '.join(sorted(rewritten)))}."
        )
    if not rounds.has_files:
        yield ONLY_MODELS
    if rounds.left_out is not None:
        yield (
            f"The replies in {printable_excerpt(rounds.left_out.name)} were left out, as the "
            f"model that was sent in this round was not saved: {ADD_FIRST_MODEL}."
        )
    if about.count_unit == "unknown":
        yield "Numbers of examples were left out, as nobody knows what they count."
    elif about.count_unit != "examples":
        yield (
            f"Numbers of examples were computed from {about.count_unit}, as if all batches "
            "were full."
        )


def _read_round(
    rounds: _Rounds, client_info: "_ClientInfo", clients: frozenset[Party], index: int
) -> ExportedRound:
    model = rounds.models[index]
    if index == len(rounds.folders):
        number = parse_round_number(rounds.folders[-1]) + 1 if rounds.folders else 0
        return ExportedRound(number, model, clients, ())
    number = parse_round_number(rounds.folders[index])
    answers = client_info.round_answers(rounds, index)
    return ExportedRound(number, model, client_info.asked_in(number, answers), answers)


@dataclass(frozen=True, slots=True)
class _ClientInfo:
    """Metadata of clients from `about`, by party."""

    clients: tuple[Party, ...] | None
    asked: Mapping[int, frozenset[Party]]
    sizes: Mapping[Party, int | None]
    answers: Mapping[int, Mapping[Party, ClientAnswer]]
    count_examples: Callable[[int | None], int | None]

    def answers_in(self, number: int) -> Mapping[Party, ClientAnswer]:
        return self.answers.get(number, {})

    def sampled_in(self, number: int) -> frozenset[Party]:
        return self.asked.get(number, frozenset(self.clients or ()))

    def round_answers(self, rounds: _Rounds, index: int) -> tuple[ExportedAnswer, ...]:
        # Without any file of a client, only global models were saved, and nobody is missing.
        if not rounds.has_files:
            return ()
        files = list_round_files(rounds.folders[index])
        sampled, told = self.sampled_in(files.number), self.answers_in(files.number)
        names = sampled | files.answers.keys() | told.keys()
        return sort_answers(self._round_answer(rounds, files, client) for client in names)

    def asked_in(self, number: int, answers: Iterable[ExportedAnswer]) -> frozenset[Party]:
        return self.sampled_in(number) | {answer.client for answer in answers}

    def _round_answer(
        self, rounds: _Rounds, files: RoundFiles, client: Party
    ) -> ExportedAnswer:
        path, answer = files.answers.get(client), self.answers_in(files.number).get(client)
        if path is None:
            return ExportedAnswer(
                client, None, NO_FILE if answer is None else answer.missing or NO_FILE
            )
        default_examples = self.sizes.get(client)
        if answer is None:
            return ExportedAnswer(client, path, examples=default_examples)
        examples = default_examples
        if answer.examples is not None:
            examples = self.count_examples(answer.examples)
        start = None if answer.began_in is None else rounds.model_of(answer.began_in)
        return ExportedAnswer(
            client, path, examples=examples, metrics=answer.metrics, start=start
        )


def sort_answers(answers: Iterable[ExportedAnswer]) -> tuple[ExportedAnswer, ...]:
    """Return the replies of a round in the order of a transcript: missing ones first."""
    return tuple(
        sorted(
            answers,
            key=lambda answer: (answer.path is not None, natural_sort_key(answer.client)),
        )
    )


def _parse_client_info(about: ImportInfo, info_path: Path) -> _ClientInfo:
    parse_names = partial(_parse_unique_names, info_path)
    clients = None if about.clients is None else parse_names("clients", about.clients)
    by_round = defaultdict[int, list[ClientAnswer]](list)
    for answer in about.answers:
        by_round[answer.round].append(answer)
    answers = {
        number: dict(
            zip(
                parse_names(f"answers of round {number}", [one.client for one in told]),
                told,
                strict=True,
            )
        )
        for number, told in by_round.items()
    }
    sizes = map(about.count_examples, about.examples.values())
    return _ClientInfo(
        clients,
        {
            one.round: frozenset(parse_names(f"asked of round {one.round}", one.clients))
            for one in about.asked
        },
        dict(zip(parse_names("examples", about.examples), sizes, strict=True)),
        answers,
        about.count_examples,
    )


def _parse_unique_names(info_path: Path, key: str, names: Iterable[str]) -> tuple[Party, ...]:
    """Return the parties of these names.

    Raises:
        TranscriptError: if two names are of one party, such as `client-3` and `3`.

    """
    parties = tuple(parse_client_name(name, info_path) for name in names)
    repeated = sorted(one for one, count in Counter(parties).items() if count > 1)
    if repeated:
        raise TranscriptError(
            f"{info_path}: {key} names more than once: "
            f"{printable_excerpt(', '.join(repeated))}: keep one"
        )
    return parties


def _contradictions(
    client_info: _ClientInfo, rounds: _Rounds, clients: set[Party]
) -> Iterator[str]:
    """Yield the contradictions between `about` and the files of the rounds with replies."""
    answered = (*([] if rounds.left_out is None else [rounds.left_out]), *rounds.folders)
    numbers = {parse_round_number(round_): round_ for round_ in answered}
    known_clients = clients if client_info.clients is None else set(client_info.clients)
    for client in sorted(client_info.sizes.keys() - clients):
        yield f"examples names {client}, which has no file in any round"
    for number, names in client_info.asked.items():
        if number not in numbers:
            yield f"asked names round {number}, which has no reply of any client"
        for client in sorted(names - known_clients):
            yield f"asked names {client} in round {number}, but clients does not"
    for number, answers in client_info.answers.items():
        if number not in numbers:
            yield f"answers names round {number}, which has no reply of any client"
        for client in sorted(answers.keys() - known_clients):
            yield f"answers names {client} in round {number}, which is no client of the run"
        yield from _contradictions_of_starts(number, answers, rounds)
    for round_ in numbers.values():
        yield from _round_contradictions(client_info, list_round_files(round_), known_clients)


def _contradictions_of_starts(
    number: int, answers: Mapping[Party, ClientAnswer], rounds: _Rounds
) -> Iterator[str]:
    """Yield the replies of a round that cannot have begun from the model that `about` names."""
    for client, answer in answers.items():
        start = answer.began_in
        if start is not None and (start > number or rounds.model_of(start) is None):
            yield (
                f"answers says that the reply of {client} in round {number} began in round "
                f"{start}, whose model was not sent before it, or was not saved"
            )


def _round_contradictions(
    client_info: _ClientInfo, files: RoundFiles, known_clients: set[Party]
) -> Iterator[str]:
    answered, has_file = files.answers.keys(), f"has a file in round {files.number}"
    for client in sorted(answered - known_clients):
        yield f"{client} {has_file}, but clients does not name it"
    for client in sorted(answered - client_info.asked.get(files.number, answered)):
        yield f"{client} {has_file}, but asked does not name it"
    for client, answer in client_info.answers_in(files.number).items():
        if answer.missing and client in answered:
            yield f"answers says why the reply of {client} is missing, but it {has_file}"
        elif not answer.missing and client not in answered:
            yield (
                f"answers names {client} in round {files.number}, which has no file: give the "
                "reason in missing"
            )


def _refuse_contradictions(info_path: Path, contradictions: Iterator[str]) -> None:
    found = list(contradictions)
    if not found:
        return
    more = (
        [f"and {len(found) - MAX_CONTRADICTIONS} more"]
        if len(found) > MAX_CONTRADICTIONS
        else []
    )
    raise TranscriptError(
        f"{info_path} and the files contradict each other: "
        f"{'; '.join(found[:MAX_CONTRADICTIONS] + more)}: "
        "correct one of them"
    )


def model_tensors(
    model: Path, exported: ExportedWeights, about: ImportInfo, info_path: Path
) -> tuple[Shapes, tuple[str, ...]]:
    """Return the shapes of the model's tensors in its order, and the names of all others.

    Args:
        model: file of the first model, for error messages.
        exported: its content.
        about: metadata, which may name the tensors.
        info_path: its file, for error messages.

    Raises:
        TranscriptError: if the metadata name a tensor that the file does not contain.

    """
    shapes = tensor_shapes(exported.weights)
    if about.tensors is None:
        return shapes, exported.left_out
    unknown = [name for name in about.tensors if name not in shapes]
    if unknown or not about.tensors:
        raise TranscriptError(
            f"{info_path}: tensors names {printable_excerpt(', '.join(unknown)) or 'none'}, "
            f"but {model} contains {printable_excerpt(', '.join(shapes))}: name some of these"
        )
    rest = tuple(name for name in shapes if name not in about.tensors)
    return {name: shapes[name] for name in about.tensors}, (*exported.left_out, *rest)
