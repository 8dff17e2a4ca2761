"""No reply costs another one its record in a strategy of Flower's older API, or its time."""

from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="the extra flower is not installed")

from overheard.archive.reader import open_transcript
from overheard.core.parties import client
from tests.hostile.flower_replies import FIRST_HOSTILE, HONEST
from tests.hostile.strategy_replies import record_run, seconds_of_reply, strategy_replies
from tests.hostile.test_replies import MAX_SECONDS, are_listed_as, check_honest

ROUNDS = 2


def check_run(folder: Path, scale: int) -> None:
    kinds = strategy_replies(scale)
    strategy = record_run(folder / "hostile", list(kinds.values()), ROUNDS)
    assert strategy.stopped is None
    record_run(folder / "honest", [], ROUNDS)
    honest = [client(number) for number in HONEST]
    check_honest(strategy.folder, folder / "honest", honest, ROUNDS)
    messages = list(open_transcript(strategy.folder).messages)
    wrong = []
    for place, (name, kind) in enumerate(kinds.items()):
        node = client(FIRST_HOSTILE + place)
        for number in range(ROUNDS):
            of_node = [one for one in messages if (one.sender, one.round) == (node, number)]
            if not are_listed_as(of_node, kind.outcome):
                wrong.append((name, number, [type(one.body).__name__ for one in of_node]))
    assert not wrong


def test_every_honest_reply_is_recorded_beside_hostile_ones(tmp_path: Path) -> None:
    check_run(tmp_path, 20_000)


@pytest.mark.nightly
def test_every_honest_reply_is_recorded_beside_large_hostile_ones(tmp_path: Path) -> None:
    check_run(tmp_path, 1_000_000)


@pytest.mark.nightly
def test_no_reply_takes_long_of_the_servers_thread(tmp_path: Path) -> None:
    seconds = {
        name: seconds_of_reply(tmp_path / str(place), kind)
        for place, (name, kind) in enumerate(strategy_replies(1_000_000).items())
    }
    assert {name: one for name, one in seconds.items() if one > MAX_SECONDS} == {}
