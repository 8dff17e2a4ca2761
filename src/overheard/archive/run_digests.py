"""The digests of a simulated run's files, in `sha256.json` beside them once it is complete.

Weights are left out, as the message lists state their digests, and so is the run time.
"""

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError

from overheard.archive.layout import seconds_path
from overheard.core.errors import OutputError
from overheard.disk.digests import HOW_TO_TRUST, is_store_trusted, sha256_of
from overheard.disk.reading import read_json_text
from overheard.disk.writing import write_text

_PARSER = TypeAdapter(dict[str, str], config=ConfigDict(strict=True))

ROUNDS = "rounds"
"""The folder of rounds in a transcript."""


def write_run_digests(run: Path) -> None:
    """Write the digests of a run that is complete, unless they are written already.

    Raises:
        OutputError: if the folder cannot be read or written.

    """
    if not _list_path(run).exists():
        listed = f"{json.dumps(_found_digests(run), indent=0)}\n"
        write_text(_list_path(run), listed, inside=run)


def check_run_digests(run: Path) -> None:
    """Compare the files of a run with their digests, if it is complete.

    If the store is trusted, nothing is compared.

    Raises:
        OutputError: if a file differs, is missing or was added; it names the file.

    """
    path = _list_path(run)
    if is_store_trusted() or not path.exists():
        return
    try:
        listed = _PARSER.validate_json(read_json_text(path, OutputError, inside=run))
    except (OutputError, ValidationError) as error:
        raise _altered(path, "is damaged", run) from error
    found = _found_digests(run)
    for name in sorted(listed.keys() | found.keys()):
        if name not in found:
            raise _altered(run / name, "is missing", run)
        if name not in listed:
            raise _altered(run / name, "was added after the run", run)
        if found[name] != listed[name]:
            raise _altered(run / name, "was altered after it was written", run)


def digest_of_run(run: Path) -> str:
    """Return one digest of the files of a run; of a run that does not exist, that of no file.

    Raises:
        OutputError: if the folder cannot be read.

    """
    return sha256(repr(sorted(_found_digests(run).items())).encode()).hexdigest()


def _found_digests(run: Path) -> Mapping[str, str]:
    """Return the digest of each file of a run that is to be listed, by its path in the run."""
    found = dict[str, str]()
    try:
        for folder, folders, names in os.walk(run):
            folders.sort()
            is_round = Path(folder).parent.name == ROUNDS
            for name in sorted(names):
                path = Path(folder, name)
                is_json = name.endswith((".json", ".jsonl"))
                is_state = name.endswith(".safetensors") and not is_round
                is_left_out = path in (_list_path(run), seconds_path(run))
                if (is_json or is_state) and not is_left_out:
                    found[path.relative_to(run).as_posix()] = sha256_of(path)
    except OSError as error:
        raise OutputError(
            f"{run} cannot be read ({error}): check the permissions, or remove it, and the "
            "run is trained again"
        ) from error
    return found


def _list_path(run: Path) -> Path:
    return run / "sha256.json"


def _altered(path: Path, what: str, run: Path) -> OutputError:
    return OutputError(
        f"{path} {what}: remove the folder {run}, and the run is trained again; {HOW_TO_TRUST}"
    )
