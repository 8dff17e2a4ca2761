"""Parses the `--workers` option: local processes, or a Ray cluster."""

import re
from dataclasses import dataclass

import typer

from overheard.learning.workers import starter

ADDRESS = re.compile(r"ray://[A-Za-z0-9._-]+:[0-9]{1,5}")

STEPS_OF_AUDITS = "overheard.auditing.runs_ahead"
"""Module that workers need in an audit. It is named, since importing it takes seconds."""

METAVAR = "NUMBER|ray|ray://HOST:PORT"


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What trains the models.

    Args:
        processes: number of local processes; None = one per core.
        cluster: address of the Ray cluster that trains virtual clients; "local" = start one on
            this machine; None = no cluster.

    """

    processes: int | None = None
    cluster: str | None = None


def parse_workers(text: str) -> WorkerOptions:
    """Parse the text of the option.

    Raises:
        typer.BadParameter: if the text is not a valid value; it lists the valid ones.

    """
    if text.isdecimal() and 1 <= len(text) <= 6 and int(text) >= 1:
        return WorkerOptions(int(text))
    if text == "ray":
        return WorkerOptions(cluster="local")
    if ADDRESS.fullmatch(text):
        return WorkerOptions(cluster=text)
    raise typer.BadParameter(
        f"{text!r} is not valid: give a number of processes from 1 to 999999, 'ray' for Ray "
        "on this machine, or the address of a Ray cluster such as 'ray://host:10001'"
    )


def prepare_workers(options: WorkerOptions | None) -> None:
    """Let worker processes import torch in the background, if a command may use them."""
    chosen = options or WorkerOptions()
    if chosen.cluster is None:
        starter.start_for(chosen.processes, [STEPS_OF_AUDITS])
