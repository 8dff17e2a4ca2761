"""The ground truth of a run, in a separate file that need not be shared.

It has a key for each kind of fact, and the accuracy by round.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, create_model
from pydantic_core import to_json

from overheard.archive.layout import path_exists, truth_path
from overheard.archive.manifest import describe_damage
from overheard.archive.repeated_keys import refuse_repeated_keys
from overheard.core.errors import DataError, TranscriptError
from overheard.core.facts import Facts
from overheard.core.settings import CheckedTable, RoundNumber, Share
from overheard.core.true_facts.stated import refuse_repetition
from overheard.core.truth import GroundTruth, TrueFact
from overheard.disk.bounded_errors import BoundedModel
from overheard.disk.reading import read_json_text
from overheard.disk.writing import write_bytes

ACCURACY = "accuracy"
"""The key of the accuracy, which is no fact of clients."""

Kinds = tuple[type[TrueFact], ...]


class _Table(BoundedModel):
    model_config = CheckedTable.model_config


@dataclass(frozen=True, slots=True)
class _Accuracy:
    round: RoundNumber
    accuracy: Share


def write_truth(folder: Path, truth: GroundTruth, *, inside: Path | None = None) -> None:
    """Write the ground truth beside the transcript of a run.

    Args:
        folder: the folder of the run.
        truth: the ground truth.
        inside: the output folder that the folder of the run is in; None = they are one.

    Raises:
        DataError: if `read_truth` would refuse it.

    """
    content = truth_text(truth).encode()
    write_bytes(truth_path(folder), content, inside=folder if inside is None else inside)


def truth_text(truth: GroundTruth) -> str:
    """Return the content of the file of a ground truth.

    Raises:
        DataError: if `read_truth` would refuse it.

    """
    accuracy = [_Accuracy(number, share) for number, share in truth.accuracy.items()]
    stated = {fact.key: fact.to_json() for fact in truth.facts}
    content = to_json({**stated, ACCURACY: accuracy}).decode() + "\n"
    try:
        _parse_truth(content, tuple(map(type, truth.facts)))
    except ValueError as error:
        raise DataError(
            f"the ground truth cannot be written: {describe_damage(error)}; correct it in the "
            "data"
        ) from error
    return content


def has_truth(folder: Path) -> bool:
    """Return whether the ground truth of a run is there."""
    return path_exists(truth_path(folder))


def read_truth(folder: Path, kinds: Iterable[type[TrueFact]]) -> GroundTruth:
    """Read the ground truth of a run.

    Args:
        folder: the folder of the run.
        kinds: the kinds of facts that the file may state, such as those that questions read.

    Raises:
        TranscriptError: if it is missing or damaged, contradicts itself, or states a fact of
            another kind.

    """
    path = truth_path(folder)
    if not has_truth(folder):
        raise TranscriptError(
            f"{path} is missing: attacks can run without it, but claims cannot be scored; copy "
            "it from the run"
        )
    content = read_json_text(path, TranscriptError, inside=folder)
    try:
        return _parse_truth(content, tuple(kinds))
    except ValueError as error:
        raise TranscriptError(
            f"{path} is damaged: {describe_damage(error)}; correct it, or copy it again"
        ) from error


def _parse_truth(content: str | bytes, kinds: Kinds) -> GroundTruth:
    """Parse the content of a file of ground truth. What is empty is unknown.

    Raises:
        ValueError: if it is damaged, or a value contradicts another one.

    """
    refuse_repeated_keys(content)
    stated = _model(kinds).model_validate_json(content).__dict__
    accuracy: tuple[_Accuracy, ...] = stated[ACCURACY]
    refuse_repetition(ACCURACY, [f"round {one.round}" for one in accuracy])
    facts = Facts(*(kind.from_json(stated[kind.key]) for kind in kinds if stated[kind.key]))
    for fact in facts:
        fact.refuse_contradiction(facts)
    return GroundTruth(facts, {one.round: one.accuracy for one in accuracy})


@cache
def _model(kinds: Kinds) -> type[BaseModel]:
    """Return the model of a file that may state facts of these kinds."""
    # Any: each kind has a form of its own.
    fields: Mapping[str, Any] = {kind.key: (kind.form, None) for kind in kinds}
    accuracy = (tuple[_Accuracy, ...], ...)
    return create_model("Truth", __base__=_Table, accuracy=accuracy, **fields)
