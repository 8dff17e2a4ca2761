"""The names that an app gives to the parties of a recording, in a file beside it."""

from collections.abc import Mapping
from pathlib import Path

from overheard.archive.layout import path_exists
from overheard.core.errors import TranscriptError
from overheard.core.parties import Party
from overheard.disk.reading import parse_json, read_json_text

NAMES_FILE = "node_names.json"
"""In the folder of the recording, outside of the transcript, which can be shared without it."""


def read_party_names(recording: Path) -> Mapping[Party, str]:
    """Return the name of each party that has one; empty if there is no such file.

    Raises:
        TranscriptError: if the file cannot be read, or is no JSON object of texts.

    """
    path = recording / NAMES_FILE
    if not path_exists(path):
        return {}
    names = parse_json(read_json_text(path, TranscriptError), str(path), TranscriptError)
    if not isinstance(names, dict) or any(not isinstance(one, str) for one in names.values()):
        raise TranscriptError(f"{path}: must be a JSON object with a name for each party")
    return {Party(party): name for party, name in names.items()}
