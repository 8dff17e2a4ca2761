"""Finds the models and answers of a run in a folder, by round and client."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from overheard.archive.spelled import spelled
from overheard.core.errors import TranscriptError
from overheard.core.parties import SHADOW, Party, party
from overheard.recorders.exported_weights import SUFFIXES

GLOBAL = "global"
"""What the file is called of the model that a round began with."""

ABOUT = ("about.toml", "about.json")

TAKEN = frozenset({"server", "cohort", "aggregate", SHADOW})
"""Names that mean something else here than a client."""

PICKLED = frozenset({".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".bin", ".joblib", ".npy"})
"""What models are often saved as, and what might run a stranger's program when it is opened."""

_ROUND = re.compile(r"(?:(?:round|rnd|r)[-_ ]?)?([0-9]{1,9})", re.IGNORECASE)
_CLIENT = re.compile(r"client(?:[-_/](?=.)|(?=[0-9]))", re.IGNORECASE)
_DIGITS = re.compile(r"([0-9]+)")


@dataclass(frozen=True, slots=True)
class RoundFiles:
    """The files of one round.

    Args:
        number: as its folder is called.
        model: the file of the model that was sent out.
        answers: the file of each client that answered, in order of their names.

    """

    number: int
    model: Path
    answers: Mapping[Party, Path]


def exported_rounds(folder: Path) -> tuple[Path, ...]:
    """The folders of the rounds, in order; `files_of` looks into them.

    Raises:
        TranscriptError: if there are none, one is missing, stands there twice, or something
            else does.

    """
    found = dict[int, Path]()
    for entry in _entries(folder):
        said = _ROUND.fullmatch(entry.name)
        if said is None or not entry.is_dir():
            if entry.name in ABOUT:
                continue
            raise TranscriptError(
                f"{_told(entry)} is no folder of a round, such as round-0003: take it away, "
                "or rename it"
            )
        number = int(said[1])
        if number in found:
            raise TranscriptError(
                f"{_told(entry)} and {found[number].name!r} are both round {number}: keep one"
            )
        found[number] = entry
    if not found:
        raise TranscriptError(
            f"{_told(folder)} holds no folder of a round: name them round-0000, round-0001, "
            "... each with global.safetensors (or .npz) and a file for each client"
        )
    first, last = min(found), max(found)
    if first > 1:
        raise TranscriptError(
            f"{_told(folder)} begins with round {first}: rounds count from 0 or 1; rename "
            "them, or add those before"
        )
    gaps = (number for number in range(first, last) if number not in found)
    gap = next(gaps, None)
    if gap is not None:
        raise TranscriptError(
            f"{_told(folder)} lacks round {gap} yet has round {last}: add it, or take later "
            "ones away"
        )
    return tuple(found[number] for number in range(first, last + 1))


def number_of(round_: Path) -> int:
    """The number in the name of a round's folder."""
    said = _ROUND.fullmatch(round_.name)
    assert said is not None, "exported_rounds gives no other folders"
    return int(said[1])


def files_of(round_: Path) -> RoundFiles:
    """The files of one round; reads names only.

    Raises:
        TranscriptError: if the model that was sent out is missing, or a file is none of a
            client's weights.

    """
    models, answers = list[Path](), dict[Party, Path]()
    for entry in _entries(round_):
        _refuse_other_files(entry)
        if entry.stem.lower() == GLOBAL:
            models.append(entry)
            continue
        who = client_called(entry.stem, entry)
        if who in answers:
            raise TranscriptError(
                f"{_told(entry)} and {answers[who].name!r} are both of {who}: keep one"
            )
        answers[who] = entry
    if len(models) > 1:
        raise TranscriptError(f"{_told(models[1])} is a second global model: keep one")
    if not models:
        raise TranscriptError(
            f"{_told(round_)} lacks the model that was sent out in that round, without which "
            "answers say nothing: save it there as global.safetensors (or .npz)"
        )
    order = sorted(answers, key=in_order)
    return RoundFiles(number_of(round_), models[0], {who: answers[who] for who in order})


def client_called(name: str, place: Path) -> Party:
    """The party that a client's name stands for: `client-3`, `client3` and `3` are `client/3`.

    Raises:
        TranscriptError: if it is no fit name.

    """
    said = _CLIENT.match(name)
    short = name if said is None else name[said.end() :]
    if short.lower() in TAKEN:
        raise TranscriptError(
            f"{_told(place)}: {short!r} is no name for a client, as it means something else "
            "in a transcript: rename it"
        )
    try:
        return party(f"client/{short}")
    except ValueError as error:
        raise TranscriptError(f"{_told(place)}: {spelled(str(error))}") from error


def in_order(who: Party) -> tuple[tuple[int, str], ...]:
    """What to sort clients by, so that `client/10` stands behind `client/9`."""
    return tuple(
        (int(part), "") if part.isdigit() else (-1, part) for part in _DIGITS.split(who)
    )


def _entries(folder: Path) -> Iterator[Path]:
    """All that stands there but what is hidden, sorted."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise TranscriptError(
            f"{_told(folder)} cannot be read ({error.strerror}): name the folder that holds "
            "the rounds, and check the permissions"
        ) from error
    return (folder / name for name in names if not name.startswith("."))


def _refuse_other_files(entry: Path) -> None:
    if entry.suffix.lower() in PICKLED:
        raise TranscriptError(
            f"{_told(entry)} may run a program when it is opened, so it is not: convert it "
            "where you trust it, by `from safetensors.torch import save_file; "
            "save_file(torch.load('model.pt', weights_only=True), 'model.safetensors')` "
            "(numpy: `numpy.savez('model.npz', **arrays)`)"
        )
    if entry.suffix not in SUFFIXES:
        raise TranscriptError(
            f"{_told(entry)} is neither a .safetensors nor an .npz file: take it away, or "
            "convert it"
        )


def _told(path: Path) -> str:
    return spelled(str(path))
