"""Recording of NVFlare runs at the server and at sites, including failures."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from overheard.archive.manifest import read_manifest
from overheard.archive.reader import open_transcript, verify_transcript
from overheard.core.messages import Broadcast, MissingReply, Update
from overheard.core.parties import SERVER, Party
from overheard.core.transcript import Transcript
from overheard.core.view import mean_update

pytest.importorskip("nvflare", reason="the extra nvflare is not installed")
pytestmark = pytest.mark.deployment

SITES = tuple(Party(f"client/site-{number}") for number in (1, 2, 3))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three rounds at three sites behind `SVTPrivacy`; site-3 fails in round 1."""
    folder = tmp_path_factory.mktemp("nvflare")
    (folder / "file").touch()
    job = Path(__file__).with_name("nvflare_job.py")
    done = subprocess.run(
        [sys.executable, job, folder], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder


def updates(transcript: Transcript, site: Party) -> Mapping[int, Update]:
    return transcript.seen_by(SERVER).updates(site)


def test_records_a_broadcast_per_round_and_a_closing_one(run: Path) -> None:
    transcript = open_transcript(run / "server")
    broadcasts = [m for m in transcript.messages if isinstance(m.body, Broadcast)]
    assert [m.round for m in broadcasts] == [0, 1, 2, 3]
    assert [m.readers for m in broadcasts[:3]] == [frozenset(SITES)] * 3
    assert read_manifest(run / "server").rounds == 3
    assert read_manifest(run / "server").algorithm == "FedAvg(rate=1.0, mean='examples')"
    # A site does not read the server's controller.
    assert read_manifest(run / "sites" / "site-1" / "before").algorithm == ""
    # 3 + 2 + 3 updates and 4 broadcasts.
    assert verify_transcript(run / "server") == 12


def test_each_broadcast_is_the_previous_one_plus_the_mean_update(run: Path) -> None:
    transcript = open_transcript(run / "server")
    broadcasts = transcript.seen_by(SERVER).broadcasts()
    for number in range(3):
        answered = [
            update
            for site in SITES
            if (update := updates(transcript, site).get(number)) is not None
        ]
        mean = mean_update(answered).delta
        for name, weight in broadcasts[number].items():
            assert torch.allclose(weight + mean[name], broadcasts[number + 1][name], atol=1e-5)


def test_a_failed_reply_is_missing_and_not_zero(run: Path) -> None:
    messages = open_transcript(run / "server").messages
    missing = [
        (m.round, m.sender, m.body) for m in messages if isinstance(m.body, MissingReply)
    ]
    assert missing == [(1, SITES[2], MissingReply("return code EXECUTION_EXCEPTION"))]


def test_records_metadata_of_sites(run: Path) -> None:
    update = updates(open_transcript(run / "server"), SITES[1])[0]
    assert update.examples == 20
    assert update.metrics["loss"] == 0.5


def test_records_the_sizes_that_sites_learn_of_each_other(run: Path) -> None:
    # FedAvg of 2.9 leaves the weight of each site in the metadata of the next broadcast.
    second = open_transcript(run / "server").seen_by(SITES[0]).during([1]).messages[0]
    assert '"name": "site-2", "weight": 20.0' in second.body.config["metrics_aggregation_info"]


def test_the_server_receives_the_filtered_updates(run: Path) -> None:
    server = open_transcript(run / "server")
    for site in SITES:
        after = open_transcript(run / "sites" / site.removeprefix("client/") / "after")
        filtered, received = updates(after, site), updates(server, site)
        assert filtered.keys() == received.keys()
        for number, update in filtered.items():
            for name, delta in update.delta.items():
                assert torch.equal(delta, received[number].delta[name])


def test_records_updates_before_and_after_the_filter(run: Path) -> None:
    folder = run / "sites" / "site-2"
    pair = [updates(open_transcript(folder / name), SITES[1]) for name in ("before", "after")]
    assert [tuple(one) for one in pair] == [(0, 1, 2), (0, 1, 2)]
    before, after = (one[0].delta["layer.weight"] for one in pair)
    assert torch.equal(before, torch.full((4, 3), 0.02))
    assert not torch.equal(after, before)


def test_the_manifest_flags_the_sparse_vector_technique(run: Path) -> None:
    (defense,) = read_manifest(run / "server").defenses
    assert defense.name == "svt_privacy"
    assert (defense.mechanism.stated, defense.mechanism.stated_for) == (0.1, "round")
    assert "Lyu, Su and Li 2017" in defense.mechanism.unproven
    assert read_manifest(run / "sites" / "site-1" / "before").defenses == ()


def test_omits_and_names_tensors_that_are_not_floating_point(run: Path) -> None:
    assert read_manifest(run / "server").left_out == ("seen",)


def test_a_failing_recorder_stops_neither_the_run_nor_other_recorders(run: Path) -> None:
    assert (run / "file").read_bytes() == b""
    relative = run / "workspace" / "server" / "simulate_job" / "inside"
    assert len(open_transcript(relative).messages) == len(
        open_transcript(run / "server").messages
    )
