"""No result of one site costs another one its record, or NVFlare's server its time."""

from pathlib import Path

import pytest

pytest.importorskip("nvflare", reason="nvflare is not installed")
pytest.importorskip("flwr", reason="the extra flower is not installed")

from overheard.archive.reader import open_transcript
from overheard.core.messages import UnstoredMessage, Update
from overheard.core.parties import Party
from overheard.findings.lost_replies import find_lost_replies
from tests.hostile.nvflare_results import (
    HONEST,
    nvflare_results,
    record_results,
    seconds_of_result,
)
from tests.hostile.test_replies import MAX_SECONDS, check_honest

ROUNDS = 2


def check_run(folder: Path, scale: int) -> None:
    kinds = nvflare_results(scale)
    record_results(folder / "hostile", kinds, ROUNDS)
    record_results(folder / "honest", {}, ROUNDS)
    honest = [f"client/{name}" for name in HONEST]
    check_honest(folder / "hostile", folder / "honest", honest, ROUNDS)
    messages = list(open_transcript(folder / "hostile").messages)
    wrong = []
    for place, (name, kind) in enumerate(kinds.items()):
        bodies = [one.body for one in messages if one.sender == Party(f"client/h{place}")]
        expected = Update if kind.outcome == "recorded" else UnstoredMessage
        has_reasons = all(one.reason for one in bodies if isinstance(one, UnstoredMessage))
        if [type(one) for one in bodies] != [expected] * ROUNDS or not has_reasons:
            wrong.append((name, bodies))
    assert not wrong
    unrecorded = {one.party for one in find_lost_replies(messages) if one.is_unrecorded}
    assert len(unrecorded) == sum(one.outcome == "unrecorded" for one in kinds.values())


def test_every_honest_result_is_recorded_beside_hostile_ones(tmp_path: Path) -> None:
    check_run(tmp_path, 20_000)


@pytest.mark.nightly
def test_every_honest_result_is_recorded_beside_large_hostile_ones(tmp_path: Path) -> None:
    check_run(tmp_path, 1_000_000)


@pytest.mark.nightly
@pytest.mark.parametrize("name", nvflare_results(10))
def test_no_result_takes_long_of_the_servers_thread(tmp_path: Path, name: str) -> None:
    assert seconds_of_result(tmp_path, nvflare_results(1_000_000)[name]) <= MAX_SECONDS
