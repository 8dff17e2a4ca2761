"""Showing recordings."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
import torch

from overheard.archive.layout import manifest_path, round_folder
from overheard.archive.manifest import Manifest
from overheard.archive.recorder import Recorder
from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.core.messages import (
    Broadcast,
    Evaluation,
    Message,
    MessageBody,
    Timestamps,
    Update,
)
from overheard.core.parties import SERVER, Party, client
from tests.archive.recorded_run import recorded
from tests.archive.test_recordings import record
from tests.auditing.plans import SECURE_AGGREGATION, TINY, replace_tables
from tests.cli.conftest import CPU, Command
from tests.planning.conftest import (
    STATED_RECIPE,
    STATED_TASK,
    ForeignRecording,
    foreign,
    simulated,
)


def test_shows_what_was_run_and_who_can_read_what(overheard: Command, recording: Path):
    said = overheard("show", recording)
    assert said.code == 0
    assert said.err == ""
    assert "Logistic()" in said.out
    assert "rate=0.1" in said.out
    assert "2, complete" in said.out
    assert "server reads the individual updates of 3 other parties." in said.out
    rows = [line.split() for line in said.out.splitlines()]
    # Broadcasts, updates and example counts; other kinds do not occur.
    # 3 broadcasts; the server reads 3 clients x 2 rounds, a client its own 2
    assert ["server", "3", "6", "6"] in rows
    assert ["client/1", "3", "2", "2"] in rows
    flat = " ".join(said.out.split())
    assert re.search(r"metrics loss [0-9.]+ to [0-9.]+, read by server", flat)
    assert re.search(r"examples 3 senders with \d+ to \d+ examples, read by server", flat)
    assert "3 of 3 appear in more than one round: server can link their messages" in flat


def test_nobody_reads_single_updates_under_secure_aggregation(
    overheard: Command, tmp_path: Path
):
    audit(
        replace_tables(TINY, arms=(SECURE_AGGREGATION,)), tmp_path / "out",
        resources=Resources(device="cpu", workers=1),
    )  # fmt: skip
    said = overheard("show", tmp_path / "out" / "runs" / "secure_aggregation-seed0")
    assert "No party can read another party's individual updates." in said.out
    assert "SecureAggregation(), enforced at the protocol" in " ".join(said.out.split())


def test_verifies_every_weight_file(overheard: Command, recording: Path, tmp_path: Path):
    # 3 broadcasts and 6 updates
    assert "9 weight files are intact." in overheard("show", recording, "--verify").out
    copy = shutil.copytree(recording, tmp_path / "copy")
    file = sorted(round_folder(copy / "transcript", 0).glob("*.safetensors"))[0]
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(bytes(content))
    said = overheard("show", copy, "--verify")
    assert said.code == 2
    assert "was altered after it was written" in said.err


def test_refuses_a_folder_without_a_transcript(overheard: Command, tmp_path: Path):
    said = overheard("show", tmp_path)
    assert said.code == 2
    assert "name the folder of a run" in " ".join(said.err.split())


@pytest.mark.parametrize(
    "hostile", ["\x1b[2J", "\x1b]0;owned\x07", "\u202eevil", "[red]x[/red]"]
)
def test_escapes_terminal_codes_in_a_transcript(
    overheard: Command, recording: Path, tmp_path: Path, hostile: str
):
    copy = shutil.copytree(recording, tmp_path / "copy")
    path = manifest_path(copy / "transcript")
    manifest = json.loads(path.read_text())
    manifest["task"]["class_names"][0] = hostile
    manifest["protocol"] = manifest["torch"] = hostile
    defense = {"name": hostile, "settings": hostile, "enforced_at": "client"}
    manifest["defenses"] = [defense | {"switched_off_by": hostile}]
    path.write_text(json.dumps(manifest))
    said = overheard("show", copy)
    assert said.code == 0
    assert "\x1b" not in said.out
    assert "\x07" not in said.out
    assert "\u202e" not in said.out
    if hostile.startswith("["):
        assert hostile in said.out


def flat(text: str) -> str:
    return " ".join(text.split())


def test_lists_all_metadata_with_its_readers(overheard: Command, tmp_path: Path):
    recorded(tmp_path / "run")
    said = flat(overheard("show", tmp_path / "run").out)
    for part in (
        "run by flwr 1.41.0",
        "left out 1 tensors that were sent but are not in the transcript: steps",
        "Noise(1.0), enforced at the client, can be switched off by the client; states noise "
        "of 1 x clip 2 for one client, added at the client",
        "As stated by the recording; Overheard has not verified it.",
        # Nobody reads the aggregate.
        "examples 1 sender with 5 examples, read by server metrics",
        "metrics loss 0.75, read by server",
        "evaluations 1 sender: accuracy 0.5, read by server; on 7 examples",
        "config lr = 0.1, read by client/0, client/1",
        # the broadcast and the update; it went out at 1.0 and was answered at 2.5
        "times 2 messages contain the time when they were sent; clients respond in 1.5 seconds",
        "missing 1 of 1 sender: late",
    ):
        assert part in said, part


def spoken(
    folder: Path,
    bodies: dict[Party, list[MessageBody]],
    seconds: dict[Party, float] | None = None,
) -> Path:
    """Record a run in which each client sends one of these bodies per round."""
    weights, everyone = {"w": torch.zeros(2)}, frozenset(bodies)
    manifest = Manifest(None, "", None, (), (SERVER, *bodies), rounds=None)
    recorder = Recorder(folder, manifest)
    for number in range(max(map(len, bodies.values()))):
        with recorder.open_round() as now:
            now.record(Message(number, SERVER, everyone, Broadcast(weights), Timestamps(10.0)))
            for who, said in bodies.items():
                times = Timestamps(None, 10.0 + seconds[who]) if seconds else None
                if number < len(said):
                    now.record(Message(number, who, frozenset({SERVER}), said[number], times))
    return folder


def update(examples: int | None) -> Update:
    return Update({"w": torch.ones(2)}, examples)


def test_reports_the_correlation_of_response_time_and_size(overheard: Command, tmp_path: Path):
    bodies = {client(number): [update(10 + number)] for number in range(6)}
    slow = {client(number): 1.0 + number for number in range(6)}
    said = flat(overheard("show", spoken(tmp_path / "slow", bodies, slow)).out)
    # the order of sizes is that of times; 1.96 / sqrt(6 - 1) = 0.88
    assert "over 6 clients: +1.00 (if unrelated: 0, beyond ±0.88 in 5 % of cases)" in said
    alike = dict.fromkeys(slow, 3.0)
    said = flat(overheard("show", spoken(tmp_path / "alike", bodies, alike)).out)
    assert "clients respond in 3 seconds" in said
    assert "correlation" not in said


def test_pseudonyms_of_one_round_are_not_reported_as_linkable(
    overheard: Command, tmp_path: Path
):
    once = {Party("anon/1"): [update(None)], Party("anon/2"): [Evaluation({}), update(None)]}
    said = flat(overheard("show", spoken(tmp_path / "run", once)).out)
    assert "1 of 2 appear in more than one round" in said
    recorder = Recorder(tmp_path / "new", Manifest(None, "", None, (), (SERVER,), rounds=None))
    for number in range(2):
        with recorder.open_round() as now:
            weights = {"w": torch.zeros(2)}
            now.record(Message(number, SERVER, frozenset(), Broadcast(weights)))
            who = Party(f"anon/{number}")
            now.record(Message(number, who, frozenset({SERVER}), update(None)))
    assert "none of 2 appears in more than one round" in flat(
        overheard("show", tmp_path / "new").out
    )


def test_reports_no_metadata_if_there_is_none(overheard: Command, tmp_path: Path):
    manifest = Manifest(None, "", None, (), (SERVER, client(0)), rounds=1)
    recorder = Recorder(tmp_path / "run", manifest)
    with recorder.open_round() as now:
        now.record(Message(0, SERVER, frozenset({client(0)}), Broadcast({"w": torch.zeros(2)})))
        now.record(Message(0, client(0), frozenset({SERVER}), update(None)))
    said = overheard("show", tmp_path / "run").out
    assert "The messages contain nothing but weights." in said


@pytest.mark.slow
def test_ten_thousand_clients_fit_on_a_screen(overheard: Command, tmp_path: Path):
    bodies = {
        client(number): [Evaluation({"loss": number / 7}, number + 1)] * (1 + number % 2)
        for number in range(10_000)
    }
    said = overheard("show", spoken(tmp_path / "run", bodies))
    assert said.code == 0
    assert len(said.out.splitlines()) < 40
    rows = [line.split() for line in said.out.splitlines()]
    # Half of them speak in one round, half in two: 2 broadcasts and what they say themselves.
    assert ["client/0", "and", "4,999", "more", "2", "0", "1"] in rows
    assert ["client/1", "and", "4,999", "more", "2", "0", "2"] in rows
    assert "10,000 senders: loss 0 to 1,428, read by server; on 1 to 10,000" in flat(said.out)


__all__ = ["foreign", "simulated"]


def test_show_tells_of_a_newer_recording_in_one_line(overheard: Command, tmp_path: Path):
    old, new = record(tmp_path / "run", 1000.0), record(tmp_path / "run-2", 2000.0)
    said = overheard("show", old)
    assert f"There is a newer recording: {new.resolve()} (1 round, 1970-01-01" in said.err
    assert "newer" not in overheard("show", new).err
    assert "newer" not in overheard("show", old, "--json").out


@pytest.fixture
def newest(foreign: ForeignRecording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording in the working directory, with an older one beside it."""
    folder = foreign(task=STATED_TASK, model="Logistic()", recipe=STATED_RECIPE)
    record(tmp_path / "older", 1000.0)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    return folder


def test_init_takes_the_newest_recording_of_the_working_directory(
    overheard: Command, newest: Path
):
    said = overheard("init")
    assert said.code == 0, said.err
    assert f"Found the recording {newest.resolve()}" in said.err
    assert "the newest of 2" in said.err
    assert f"Next: overheard audit plan.toml --transcript {newest.name}" in said.out


def test_init_simulates_if_asked_to(overheard: Command, newest: Path):
    said = overheard("init", "--simulate")
    assert "Found" not in said.err
    assert 'source = "digits"' in Path("plan.toml").read_text()
    assert overheard("init", "--simulate", "--from-recording", newest).code == 2


def test_init_and_audit_tell_of_a_newer_recording(
    overheard: Command, newest: Path, tmp_path: Path
):
    record(tmp_path / f"{newest.name}-2", 9e9)
    said = overheard("init", "--from-recording", newest)
    assert f"There is a newer recording: {newest}-2" in said.err
    audited = overheard("audit", "plan.toml", "--transcript", newest.name, *CPU)
    assert f"There is a newer recording: {newest.name}-2" in audited.err
