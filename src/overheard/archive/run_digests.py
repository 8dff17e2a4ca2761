"""The digests of a simulated run's files, in `sha256.json` beside them.

Of a run that is not complete, the list has the message lists of its rounds alone.

Weights are left out, as the message lists state their digests, and so is the run time.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter

from overheard.archive.layout import messages_path, seconds_path, transcript_path
from overheard.archive.repeated_keys import refuse_repeated_keys
from overheard.core.errors import OutputError
from overheard.disk.bounded_errors import BOUNDED
from overheard.disk.digests import HOW_TO_TRUST, is_store_trusted, sha256_of
from overheard.disk.folders import walk_folders
from overheard.disk.open_folder import explain_errors
from overheard.disk.reading import read_json_text
from overheard.disk.writing import write_text, write_unflushed

_PARSER = TypeAdapter(
    Annotated[dict[str, str], Field(min_length=1), BOUNDED], config=ConfigDict(strict=True)
)

TRUTH = "truth.json"
"""The file of a run that is written last: a list with it is of a complete run."""

ROUNDS = "rounds"
"""The folder of rounds in a transcript."""


def list_round(run: Path, number: int) -> None:
    """Add the message list of a round to the list of a run that is not complete.

    The list is not flushed to the disk: after a power cut it may lack rounds, which are then
    not compared.

    Raises:
        OutputError: if the folder cannot be read or written, or the list is damaged.

    """
    if _is_kept(run):
        return
    listed, path = _read_list(run), messages_path(transcript_path(run), number)
    name = path.relative_to(run).as_posix()
    if TRUTH not in listed and name not in listed:
        with explain_errors(path):
            digest = sha256_of(path)
        content = _list_text({**listed, name: digest}).encode()
        write_unflushed(_list_path(run), content, inside=run)


def write_run_digests(run: Path) -> None:
    """Write the digests of a run that is complete, unless they are written already.

    Raises:
        OutputError: if the folder cannot be read or written.

    """
    if not _is_kept(run) and TRUTH not in _read_list(run):
        write_text(_list_path(run), _list_text(_file_digests(run)), inside=run)


def check_run_digests(run: Path) -> None:
    """Compare the files of a run with their digests.

    If the store is trusted, nothing is compared.

    Raises:
        OutputError: if a file differs or is missing, or was added to a complete run; it names
            the file.

    """
    if is_store_trusted():
        return
    listed = _read_list(run)
    if not listed:
        return
    found = _file_digests(run)
    added = found.keys() if TRUTH in listed else ()
    for name in sorted(listed.keys() | added):
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
    return sha256(repr(sorted(_file_digests(run).items())).encode()).hexdigest()


def _file_digests(run: Path) -> Mapping[str, str]:
    """Return the digest of each file of a run that is to be listed, by its path in the run."""
    found = dict[str, str]()
    try:
        for folder, folders, names in walk_folders(run):
            folders.sort()
            is_round = folder.parent.name == ROUNDS
            for name in sorted(names):
                path = folder / name
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


def _is_kept(run: Path) -> bool:
    """Return whether a list stays as it is, as nobody compared what it would state."""
    return is_store_trusted() and _list_path(run).exists()


def _read_list(run: Path) -> Mapping[str, str]:
    """Return the digests that a run lists by the path of the file; none without a list."""
    path = _list_path(run)
    try:
        # A power cut may leave an empty file.
        if not path.exists() or (path.is_file() and not path.stat().st_size):
            return {}
        content = read_json_text(path, OutputError, inside=run)
        refuse_repeated_keys(content)
        return _PARSER.validate_json(content)
    except (OSError, OutputError, ValueError) as error:
        raise _altered(path, "is damaged", run) from error


def _list_text(digests: Mapping[str, str]) -> str:
    return f"{json.dumps(digests, indent=0)}\n"


def _list_path(run: Path) -> Path:
    return run / "sha256.json"


def _altered(path: Path, what: str, run: Path) -> OutputError:
    return OutputError(
        f"{path} {what}: remove the folder {run}, and the run is trained again; {HOW_TO_TRUST}"
    )
