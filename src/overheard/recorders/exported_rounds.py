"""The files of an exported run in a folder, by round and client."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from unicodedata import is_normalized, normalize

from overheard.archive.excerpt import printable_excerpt
from overheard.core.errors import TranscriptError
from overheard.core.parties import SHADOW_PREFIX, Party, parse_party
from overheard.recorders.exported_weights import SUFFIXES
from overheard.recorders.exports.conversions import explain_conversion

GLOBAL_MODEL_NAME = "global"
"""File name, without suffix, of the global model of a round."""

NAME_FORM: Final = "NFKC"
"""The form of Unicode that all names of parties have."""

INFO_FILES = ("about.toml", "about.json")

RESERVED_NAMES = frozenset({"server", "cohort", "aggregate", SHADOW_PREFIX})
"""Names that are reserved for other parties than clients."""

_ROUND = re.compile(r"(?:(?:round|rnd|r)[-_ ]?)?([0-9]{1,9})", re.IGNORECASE)
_CLIENT = re.compile(r"client(?:[-_/](?=.)|(?=[0-9]))", re.IGNORECASE)
_DIGITS = re.compile(r"([0-9]+)")


@dataclass(frozen=True, slots=True)
class RoundFiles:
    """The files of one round.

    Args:
        number: round number, as in the folder's name.
        model: file of the broadcast model.
        answers: file of each client that replied, sorted by client.

    """

    number: int
    model: Path
    answers: Mapping[Party, Path]


def list_round_folders(folder: Path) -> tuple[Path, ...]:
    """List the folders of the rounds, in order; `list_round_files` lists their files.

    Raises:
        TranscriptError: if there are none, or a round is missing or duplicated, or there is
            another file or folder.

    """
    found = dict[int, Path]()
    for entry in _entries(folder):
        match = _ROUND.fullmatch(entry.name)
        if match is None or not entry.is_dir():
            if entry.name in INFO_FILES:
                continue
            raise _no_round_folder(entry)
        number = int(match[1])
        if number in found:
            raise TranscriptError(
                f"{_escape_path(entry)} and {found[number].name!r} are both round {number}: "
                "keep one"
            )
        found[number] = entry
    if not found:
        raise TranscriptError(
            f"{_escape_path(folder)} has no folder of a round: name them round-0000, "
            "round-0001, ..., each with global.safetensors (or .npz) and a file for each client"
        )
    first, last = min(found), max(found)
    if first > 1:
        raise TranscriptError(
            f"{_escape_path(folder)} begins with round {first}: rounds must start at 0 or 1: "
            "rename them, or add the earlier ones"
        )
    gaps = (number for number in range(first, last) if number not in found)
    gap = next(gaps, None)
    if gap is not None:
        raise TranscriptError(
            f"{_escape_path(folder)} has no round {gap}, but a round {last}: add it, or remove "
            "the later rounds"
        )
    return tuple(found[number] for number in range(first, last + 1))


def _no_round_folder(entry: Path) -> TranscriptError:
    """Return an error that an entry is no folder of a round."""
    if entry.suffix in SUFFIXES or explain_conversion(entry.suffix):
        number = re.search(r"[0-9]{1,4}", entry.stem)
        folder = f"round-{0 if number is None else int(number[0]):04d}"
        return TranscriptError(
            f"{_escape_path(entry)} is in no folder of a round: if it is a global model, move "
            f"it to {folder}/global{entry.suffix}; if a client sent it, to "
            f"{folder}/client-0{entry.suffix}, with the client's name"
        )
    return TranscriptError(
        f"{_escape_path(entry)} is no folder of a round, such as round-0003: remove or rename "
        "it"
    )


def parse_round_number(round_: Path) -> int:
    """Return the number in the name of a round's folder."""
    match = _ROUND.fullmatch(round_.name)
    assert match is not None, "exported_rounds returns no other folders"
    return int(match[1])


def list_round_files(round_: Path) -> RoundFiles:
    """List the files of one round, from their names only.

    Raises:
        TranscriptError: if the broadcast model is missing, or a file is no client's weights.

    """
    models, answers = list[Path](), dict[Party, Path]()
    for entry in _entries(round_):
        _refuse_other_files(entry)
        if entry.stem.lower() == GLOBAL_MODEL_NAME:
            models.append(entry)
            continue
        sender = parse_client_name(entry.stem, entry)
        if sender in answers:
            raise TranscriptError(
                f"{_escape_path(entry)} and {answers[sender].name!r} are both of {sender}: "
                "keep one"
            )
        answers[sender] = entry
    if len(models) > 1:
        raise TranscriptError(f"{_escape_path(models[1])} is a second global model: keep one")
    if not models:
        raise TranscriptError(
            f"{_escape_path(round_)} does not contain the broadcast model, which is needed to "
            "compute updates: save it there as global.safetensors (or .npz)"
        )
    order = sorted(answers, key=natural_sort_key)
    return RoundFiles(
        parse_round_number(round_), models[0], {sender: answers[sender] for sender in order}
    )


def parse_client_name(name: str, path: Path) -> Party:
    """Return a client's party: `"client-3"`, `"client3"` and `"3"` are `client/3`.

    The name is brought to one form of Unicode; see `is_other_form`.

    Raises:
        TranscriptError: if the name is invalid.

    """
    name = normalize(NAME_FORM, name)
    match = _CLIENT.match(name)
    short = name if match is None else name[match.end() :]
    if short.lower() in RESERVED_NAMES:
        raise TranscriptError(
            f"{_escape_path(path)}: {short!r} is a reserved name and cannot be a client's: "
            "rename it"
        )
    try:
        return parse_party(f"client/{short}")
    except ValueError as error:
        raise TranscriptError(
            f"{_escape_path(path)}: {printable_excerpt(str(error))}"
        ) from error


def is_other_form(name: str) -> bool:
    """Return whether a client's name is written in another form of Unicode than its party."""
    return not is_normalized(NAME_FORM, name)


def natural_sort_key(client: Party) -> tuple[tuple[int, str], ...]:
    """Return a sort key that puts `client/10` after `client/9`."""
    return tuple(
        (int(part), "") if part.isdigit() else (-1, part) for part in _DIGITS.split(client)
    )


def _entries(folder: Path) -> Iterator[Path]:
    """List the folder's entries, sorted, without hidden ones."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise TranscriptError(
            f"{_escape_path(folder)} cannot be read ({error.strerror}): give the folder with "
            "the rounds, and check its permissions"
        ) from error
    return (folder / name for name in names if not name.startswith("."))


def _refuse_other_files(entry: Path) -> None:
    if entry.suffix in SUFFIXES:
        return
    conversion = explain_conversion(entry.suffix)
    if conversion:
        raise TranscriptError(f"{_escape_path(entry)} {conversion}")
    raise TranscriptError(
        f"{_escape_path(entry)} is no file of weights ({', '.join(SUFFIXES)}): save its "
        "weights by numpy.savez, or remove it if it has none"
    )


def _escape_path(path: Path) -> str:
    return printable_excerpt(str(path))
