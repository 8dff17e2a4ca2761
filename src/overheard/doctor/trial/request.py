"""Which app runs, and how."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

CLIENTS = 10
"""Clients of a simulation, if the app states none: as many as Flower takes."""

MOST_CLIENTS = 10_000
"""The most clients of a simulation."""


@final
@dataclass(frozen=True, slots=True)
class TrialRequest:
    """Which app runs, and how.

    Args:
        folder: the folder of the app.
        digest: SHA-256 of its code as it was described, see `source.files.digest_files`.
        server: "module:name" of its server app.
        client: "module:name" of its client app.
        config: its configuration.
        clients: number of clients.
        recording: the folder of the recording to be made.
        commit: the commit of git that the folder is at; "" = not known.

    """

    folder: Path
    digest: str
    server: str
    client: str
    config: Mapping[str, bool | int | float | str]
    clients: int
    recording: Path
    commit: str = ""
