"""What a release leaves out, and what its owner should read before it leaves."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import final

from pydantic import TypeAdapter, ValidationError

from overheard.core.errors import FindingsError
from overheard.disk.limits import SMALL_FILE
from overheard.disk.reading import parse_json, read_small_file

RELEASE_FILE = "release.json"
"""Says what a release leaves out, and by which settings it was made."""


@final
@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something of an audit that a release does not contain.

    Args:
        what: what it is, in words without names or figures of clients.
        why: why it is left out.

    """

    what: str
    why: str


@final
@dataclass(frozen=True, slots=True)
class ReleaseSettings:
    """What a release may contain.

    Args:
        least_group: figures on fewer clients than this are left out.
        with_names: whether names of parties stay as they are.
        with_clients: whether the claims about each client, and what is true of it, stay.

    """

    least_group: int = 5
    with_names: bool = False
    with_clients: bool = False


KEPT = (
    "the title, the names of arms and of classes, and the table [release] of the plan, as they "
    "were written",
    "your own words in officer.toml, and the names and reasons in a policy",
)
"""Texts of people, which a release contains as they are."""


def read_release_settings(folder: Path) -> ReleaseSettings | None:
    """Return the settings of the release in a folder; None if it has no `release.json`.

    Raises:
        FindingsError: if the file is damaged.

    """
    path = folder / RELEASE_FILE
    if not path.is_file():
        return None
    content = read_small_file(path, FindingsError, part=SMALL_FILE)
    stated = parse_json(content, str(path), FindingsError, part=SMALL_FILE)
    settings = {name: stated.get(name) for name in ReleaseSettings.__dataclass_fields__}
    try:
        # Strictly, pydantic makes a dataclass from JSON alone, not from a dict.
        return TypeAdapter(ReleaseSettings).validate_json(json.dumps(settings), strict=True)
    except ValidationError as error:
        raise FindingsError(
            f"{path}: does not say by which settings the release was made: get the whole "
            "release again"
        ) from error
