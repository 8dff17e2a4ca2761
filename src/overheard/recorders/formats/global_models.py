"""Global models alone: files beside each other, numbered by round, as results are published."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, final

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.layout import checked_file_size
from overheard.core.errors import TranscriptError
from overheard.core.parties import Party
from overheard.recorders.export_format import ExportFormat
from overheard.recorders.exported_rounds import natural_sort_key, parse_client_name
from overheard.recorders.exported_run import (
    ONLY_MODELS,
    ExportedRound,
    ExportedRun,
    model_tensors,
)
from overheard.recorders.exported_weights import SUFFIXES, read_exported_weights
from overheard.recorders.exports.reply_content import ImportOptions
from overheard.recorders.import_info import ImportInfo, read_import_info

NUMBER = re.compile(r"[0-9]{1,9}")

PLACE = "/"
"""Stands for a number in a name, as no name of a file has it."""

OF_CLIENTS = re.compile(
    r"client|site|node|worker|party|user|local|hospital|institution|silo|member", re.IGNORECASE
)
"""Words in names of files that a client sent."""

MOST_NAMES = 5
"""The most files that a sentence names."""


@final
class GlobalModels(ExportFormat):
    """A folder of models such as "model_3.pt", whose names differ in one number."""

    name: ClassVar[str] = "global_models"

    def is_of(self, folder: Path) -> bool:
        """Return whether the folder has two models or more, and no folder of a round."""
        return any(len(one) > 1 for one in _series(folder).values())

    def read(self, folder: Path, options: ImportOptions) -> ExportedRun:
        """Read a series of models; those of other names are left out, and named."""
        series = _series(folder)
        models = _of_one_series(folder, series)
        info_path, info = read_import_info(folder, options)
        _refuse_facts_of_clients(info, info_path)
        step = _step(folder, models)
        for path in models.values():
            checked_file_size(path, folder)
        paths = tuple(models[number] for number in sorted(models))
        exported = read_exported_weights(paths[0], folder)
        shapes, left_out = model_tensors(paths[0], exported, info, info_path)
        names = () if info.clients is None else info.clients
        clients = frozenset(parse_client_name(one, info_path) for one in names)
        others = [
            path.name for found in series.values() for path in found if path not in set(paths)
        ]
        return ExportedRun(
            folder,
            info,
            info_path,
            len(paths),
            _Rounds(paths, tuple(sorted(models)), clients).read,
            tuple(sorted(clients, key=natural_sort_key)),
            update_count=0,
            missing_count=0,
            shapes=shapes,
            left_out=left_out,
            is_closed=True,
            notes=tuple(filter(None, (ONLY_MODELS, _step_note(step), _rest_note(others)))),
        )


@final
@dataclass(frozen=True, slots=True)
class _Rounds:
    """The models in the order of their numbers, and the clients that receive all of them."""

    paths: tuple[Path, ...]
    numbers: tuple[int, ...]
    clients: frozenset[Party]

    def read(self, index: int) -> ExportedRound:
        """Return one round, counted from 0."""
        return ExportedRound(self.numbers[index], self.paths[index], self.clients, ())


def _series(folder: Path) -> dict[str, list[Path]]:
    """Return the models in a folder by their name without numbers; none beside folders.

    A folder of models has reports and figures beside them, but no folders of rounds.
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda one: one.name)
    except OSError:
        return {}
    if any(one.is_dir() and NUMBER.search(one.name) for one in entries):
        return {}
    found = dict[str, list[Path]]()
    for one in entries:
        path = folder / one.name
        if path.suffix in SUFFIXES and not one.name.startswith("."):
            found.setdefault(NUMBER.sub(PLACE, one.name), []).append(path)
    return found


def _of_one_series(folder: Path, series: Mapping[str, Sequence[Path]]) -> dict[int, Path]:
    """Return the models of the longest series, by the number that differs."""
    for name in series:
        if OF_CLIENTS.search(name):
            raise TranscriptError(
                f"{folder}: {printable_excerpt(series[name][0].name)} is a client's, by its "
                "name. Put the files of each round into a folder of its own, such as "
                "round-0003, the global model as global and a client's as client-0, with "
                "their suffixes; or import the global models from a folder of their own"
            )
    paths = max(series.values(), key=len)
    numbers = [tuple(map(int, NUMBER.findall(path.name))) for path in paths]
    differing = [
        place for place, column in enumerate(zip(*numbers, strict=True)) if len(set(column)) > 1
    ]
    if len(differing) != 1:
        raise TranscriptError(
            f"{folder}: {printable_excerpt(paths[0].name)} and "
            f"{printable_excerpt(paths[1].name)} differ in {len(differing)} numbers, so their "
            "order is not known: name them by the round alone, such as model_3"
            f"{paths[0].suffix}"
        )
    by_number = {one[differing[0]]: path for one, path in zip(numbers, paths, strict=True)}
    if len(by_number) < len(paths):
        raise TranscriptError(
            f"{folder}: two models have the same number, such as 3 and 03: keep one of them"
        )
    return by_number


def _step(folder: Path, models: Mapping[int, Path]) -> int:
    """Return by how many rounds the models are apart."""
    numbers = sorted(models)
    steps = {after - before for before, after in pairwise(numbers)}
    if len(steps) > 1:
        listed = ", ".join(map(str, numbers[:MOST_NAMES]))
        more = ", ..." if len(numbers) > MOST_NAMES else ""
        raise TranscriptError(
            f"{folder} has the models {listed}{more}, which are not equally far apart. A "
            "change between two models is asked about as a whole: keep models of rounds that "
            "are, or add the missing ones"
        )
    return steps.pop()


def _step_note(step: int) -> str:
    if step == 1:
        return ""
    return (
        f"The models are {step} rounds apart. The change from one to the next is that of "
        f"{step} rounds, and counts as one: in the plan, its epochs are those of {step} rounds."
    )


def _rest_note(others: Sequence[str]) -> str:
    if not others:
        return ""
    named = printable_excerpt(", ".join(others[:MOST_NAMES]))
    more = f" and {len(others) - MOST_NAMES} more" if len(others) > MOST_NAMES else ""
    return f"Models of other names were left out: {named}{more}."


def _refuse_facts_of_clients(info: ImportInfo, path: Path) -> None:
    given = {
        "asked": bool(info.asked),
        "examples": bool(info.examples),
        "answers": bool(info.answers),
        "saved": info.saved is not None,
        "codes": info.codes is not None,
    }
    for key in (key for key, is_given in given.items() if is_given):
        raise TranscriptError(
            f"{path}: {key} is about files of clients or rounds, and there are only models: "
            "remove it"
        )
