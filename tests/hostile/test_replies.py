"""No reply of one client costs another one its record, or the server its time."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr", reason="the extra flower is not installed")

from overheard.archive.layout import transcript_folder
from overheard.archive.reader import open_transcript, verify_transcript
from overheard.core.messages import Message, UnstoredMessage, Update
from overheard.core.parties import client
from overheard.findings.lost_replies import find_lost_replies
from tests.hostile.flower_replies import (
    FIRST_HOSTILE,
    HONEST,
    Outcome,
    flower_replies,
    record_run,
    seconds_of_server,
)

ROUNDS = 2

MAX_SECONDS = 0.005
"""Most seconds of the server's thread for one reply."""


def honest_lines(folder: Path, honest: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield what is stored of honest messages, with the digests of their weights."""
    for path in sorted(transcript_folder(folder).rglob("messages.jsonl")):
        for text in path.read_text("utf-8").splitlines():
            line = json.loads(text)
            if line["sender"] in ("server", *honest):
                line.pop("times", None)
                for part in line["body"].values():
                    if isinstance(part, dict):
                        part.pop("name", None)
                if line["sender"] == "server":
                    line.pop("readers")
                yield line


def check_honest(folder: Path, alone: Path, honest: Sequence[str], rounds: int) -> None:
    """Check that all that honest clients sent is stored as in a run of them alone."""
    verify_transcript(folder)
    expected = list(honest_lines(alone, honest))
    assert len(expected) == rounds * (1 + len(honest))
    stored = honest_lines(folder, honest)
    # A reply in the name of an honest client is listed beside that client's own one.
    assert [one for one in stored if one["body"]["kind"] != "unstored"] == expected


def are_listed_as(messages: list[Message], outcome: Outcome) -> bool:
    """Return whether messages of one client in one round are listed as they must be."""
    updates = sum(isinstance(one.body, Update) for one in messages)
    unstored = [one.body for one in messages if isinstance(one.body, UnstoredMessage)]
    if any(not one.reason for one in unstored):
        return False
    expected = {"recorded": (1, 0), "unrecorded": (0, 1), "both": (1, 1)}[outcome]
    return (updates, len(unstored)) == expected


def check_run(folder: Path, scale: int) -> None:
    kinds = flower_replies(scale)
    grid = record_run(folder / "hostile", list(kinds.values()), rounds=ROUNDS)
    assert grid.stopped is None
    record_run(folder / "honest", [], rounds=ROUNDS)
    honest = [client(number) for number in HONEST]
    check_honest(grid.folder, folder / "honest", honest, ROUNDS)
    messages = list(open_transcript(grid.folder).messages)
    lost = {one.party for one in find_lost_replies(messages)}
    wrong = []
    for place, (name, kind) in enumerate(kinds.items()):
        node = client(FIRST_HOSTILE + place)
        for number in range(ROUNDS):
            of_node = [one for one in messages if (one.sender, one.round) == (node, number)]
            # A reply in the name of another sender leaves its own sender without one.
            if not are_listed_as(of_node, kind.outcome) and not (
                name.startswith("id ") and node in lost
            ):
                found = [type(one.body).__name__ for one in of_node]
                wrong.append((name, number, found))
    assert not wrong


def test_every_honest_reply_is_recorded_beside_hostile_ones(tmp_path: Path) -> None:
    check_run(tmp_path, 20_000)


@pytest.mark.nightly
def test_every_honest_reply_is_recorded_beside_large_hostile_ones(tmp_path: Path) -> None:
    check_run(tmp_path, 1_000_000)


@pytest.mark.nightly
@pytest.mark.parametrize("name", flower_replies(10))
def test_no_reply_takes_long_of_the_servers_thread(tmp_path: Path, name: str) -> None:
    kind = flower_replies(1_000_000)[name]
    assert seconds_of_server(tmp_path, kind) <= MAX_SECONDS
