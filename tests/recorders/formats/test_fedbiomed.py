"""An experiment of Fed-BioMed becomes a run.

The experiments in `experiments` were written by Fed-BioMed 6.4.1 itself: see the README there.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest
import torch

from overheard.archive.manifest import read_manifest
from overheard.archive.reader import open_transcript, verify_transcript
from overheard.core.errors import TranscriptError
from overheard.core.messages import Aggregate, Broadcast, MissingReply, Update
from overheard.core.parties import COHORT, SERVER, Party
from overheard.core.task import Task
from overheard.core.view import mean_update
from overheard.recorders.folder_import import ImportSummary, import_recording

EXPERIMENTS = Path(__file__).parent / "experiments"

SIZES = {
    Party("client/NODE_ff1f6da3-737a-4078-884c-354dd2c900fa"): 60,
    Party("client/NODE_30f183f6-16ef-46c8-85f7-db7594f51347"): 90,
    Party("client/NODE_aaf52626-63af-4058-b2ee-1acb426d7952"): 120,
}
"""Examples that each node of the experiments holds."""


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """Four rounds of three nodes."""
    return Path(shutil.copytree(EXPERIMENTS / "plain", tmp_path / "plain"))


@pytest.fixture
def masked(tmp_path: Path) -> Path:
    """Two rounds with secure aggregation; the masked files are not there."""
    return Path(shutil.copytree(EXPERIMENTS / "masked", tmp_path / "masked"))


def breakpoint_of(folder: Path) -> Path:
    return next(folder.glob("breakpoint_*/*.json"))


def change(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Edit the last breakpoint of an experiment."""
    path = breakpoint_of(folder)
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def test_a_real_experiment_becomes_a_run(plain: Path, tmp_path: Path) -> None:
    imported = import_recording(plain, tmp_path / "run")
    # Fed-BioMed weights replies by their numbers of samples.
    assert (imported.proof.outcome, imported.proof.reason) == ("follows", None)
    assert imported == ImportSummary(
        rounds=4, clients=3, updates=12, missing=0, left_out=(), proof=imported.proof
    )
    assert verify_transcript(tmp_path / "run") == 17  # 5 models, 4 x 3 updates
    messages = open_transcript(tmp_path / "run").messages
    assert [m.round for m in messages if isinstance(m.body, Broadcast)] == [0, 1, 2, 3, 4]
    sizes = {m.sender: m.body.examples for m in messages if isinstance(m.body, Update)}
    assert sizes == SIZES
    assert all(m.readers == {SERVER} for m in messages if isinstance(m.body, Update))
    manifest = read_manifest(tmp_path / "run")
    assert manifest.framework == "Fed-BioMed, breakpoint version 4"
    assert manifest.model == "DigitsPlan"


def test_fedavg_of_the_updates_gives_the_next_broadcast(plain: Path, tmp_path: Path) -> None:
    """The same as Fed-BioMed's own FedAverage, so updates belong to the broadcasts."""
    import_recording(plain, tmp_path / "run")
    messages = open_transcript(tmp_path / "run").messages
    models = {m.round: m.body.weights for m in messages if isinstance(m.body, Broadcast)}
    for number in range(4):
        updates = [m.body for m in messages if isinstance(m.body, Update) and m.round == number]
        mean = mean_update(updates)
        for name, start in models[number].items():
            torch.testing.assert_close(
                start + mean.delta[name], models[number + 1][name], rtol=0, atol=1e-6
            )


def test_times_of_nodes_are_metadata_of_their_messages(plain: Path, tmp_path: Path) -> None:
    import_recording(plain, tmp_path / "run")
    updates = [
        m.body for m in open_transcript(tmp_path / "run").messages if isinstance(m.body, Update)
    ]
    for update in updates:
        assert update.metrics.keys() == {"rtime_training", "ptime_training", "rtime_total"}
        assert 0 < update.metrics["rtime_training"] < update.metrics["rtime_total"]


def test_without_the_first_model_the_first_round_is_left_out(
    plain: Path, tmp_path: Path
) -> None:
    (plain / "initial_params.mpk").unlink()
    imported = import_recording(plain, tmp_path / "run")
    assert (imported.rounds, imported.updates) == (3, 9)
    assert "before round 1 were left out" in imported.notes[0]


def test_masked_replies_become_their_mean(masked: Path, tmp_path: Path) -> None:
    imported = import_recording(masked, tmp_path / "run")
    assert (imported.rounds, imported.updates) == (2, 0)
    assert "masked the replies of 2 rounds" in imported.notes[0]
    messages = open_transcript(tmp_path / "run").messages
    models = {m.round: m.body.weights for m in messages if isinstance(m.body, Broadcast)}
    means = [m for m in messages if isinstance(m.body, Aggregate)]
    assert [(m.sender, m.readers, m.body.examples) for m in means] == [  # type: ignore[union-attr]
        (COHORT, {SERVER}, 270)
    ] * 2
    for message in means:
        assert message.body.cohort == SIZES.keys()
        torch.testing.assert_close(
            models[message.round]["0.weight"] + message.body.delta["0.weight"],
            models[message.round + 1]["0.weight"],
        )
    (defense,) = read_manifest(tmp_path / "run").defenses
    assert (defense.name, defense.enforced_at) == ("secure_aggregation", "protocol")


def test_no_mean_is_told_if_the_server_has_an_optimizer(masked: Path, tmp_path: Path) -> None:
    change(masked, lambda content: content.update(agg_optimizer="optimizer.mpk"))
    imported = import_recording(masked, tmp_path / "run")
    assert "The server has an optimizer of its own." in " ".join(imported.notes)
    bodies = [type(m.body) for m in open_transcript(tmp_path / "run").messages]
    assert bodies == [Broadcast] * 3


def test_a_failed_node_is_a_missing_reply(plain: Path, tmp_path: Path) -> None:
    node = next(iter(SIZES)).removeprefix("client/")

    def fail(content: dict[str, Any]) -> None:
        reply = content["training_replies"]["2"][node]
        reply.update(success=False, msg="no memory\x1b[31m")
        del reply["params_path"]

    change(plain, fail)
    imported = import_recording(plain, tmp_path / "run")
    assert (imported.updates, imported.missing) == (11, 1)
    (missing,) = (
        m
        for m in open_transcript(tmp_path / "run").messages
        if isinstance(m.body, MissingReply)
    )
    assert (missing.round, missing.body) == (2, MissingReply("no memory\\x1b[31m"))


def test_a_history_that_is_kept_round_by_round_is_joined(plain: Path, tmp_path: Path) -> None:
    """With retain_full_history=False, each breakpoint has its own round alone."""
    last = breakpoint_of(plain)
    whole = json.loads(last.read_text())
    for number in range(4):
        kept = {
            key: {str(number): whole[key][str(number)]}
            for key in ("training_replies", "aggregated_params")
        }
        path = plain / f"breakpoint_{number:04d}" / f"breakpoint_{number:04d}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(whole | kept))
        model = whole["aggregated_params"][str(number)]["params_path"].split("/")[-1]
        if path != last:
            shutil.copy(last.parent / model, path.parent / model)
    assert import_recording(plain, tmp_path / "run").updates == 12
    shutil.rmtree(plain / "breakpoint_0001")
    with pytest.raises(TranscriptError, match="replies or the model of round 1"):
        import_recording(plain, tmp_path / "other")


def test_an_import_continues_where_it_was_stopped(plain: Path, tmp_path: Path) -> None:
    def stop(what: str, done: int, total: int) -> None:
        if what == "round 2":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_recording(plain, tmp_path / "run", on_progress=stop)
    again = import_recording(plain, tmp_path / "run")
    assert again == import_recording(plain, tmp_path / "whole")
    assert (
        (tmp_path / "run/transcript/rounds/r0003/messages.jsonl").read_bytes()
        == (tmp_path / "whole/transcript/rounds/r0003/messages.jsonl").read_bytes()
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name", "settings"),
    [
        ("local", "dp_sgd", "Opacus(type=local, sigma=0.4, clip=0.005)"),
        # Noise after training is no DP-SGD.
        ("central", "central_dp", "Fed-BioMed central DP(type=central, sigma=0.4, clip=0.005)"),
        ("secret", "fedbiomed_dp", "Fed-BioMed DP(type=secret, sigma=0.4, clip=0.005)"),
    ],
)
def test_privacy_is_recorded_by_its_stated_type(
    plain: Path, tmp_path: Path, kind: str, name: str, settings: str
) -> None:
    stated = {"type": kind, "sigma": 0.4, "clip": 0.005}
    change(plain, lambda content: content["training_args"].update(dp_args=stated))
    import_recording(plain, tmp_path / "run")
    (defense,) = read_manifest(tmp_path / "run").defenses
    assert (defense.name, defense.settings) == (name, settings)
    assert (defense.enforced_at, defense.mechanism) == ("client", None)


def test_about_adds_what_breakpoints_do_not_have(plain: Path, tmp_path: Path) -> None:
    about = {"class_names": [str(digit) for digit in range(10)], "input_shape": [64]}
    (plain / "about.json").write_text(json.dumps(about))
    import_recording(plain, tmp_path / "run")
    assert read_manifest(tmp_path / "run").task == Task((64,), tuple("0123456789"))
    (plain / "about.json").write_text(json.dumps({"clients": ["a"]}))
    with pytest.raises(TranscriptError, match="clients is stated by the breakpoints"):
        import_recording(plain, tmp_path / "other")


def test_the_folder_of_one_breakpoint_is_refused_with_what_to_name(
    plain: Path, tmp_path: Path
) -> None:
    with pytest.raises(TranscriptError, match="name the folder of the experiment"):
        import_recording(breakpoint_of(plain).parent, tmp_path / "run")


OUTSIDE = ["../../secret.mpk", "..", "/etc/passwd", "C:\\x\\..", "a\n.mpk", ".mpk", "x.pkl", ""]


@pytest.mark.parametrize("place", OUTSIDE)
def test_no_file_outside_of_the_folder_is_read(plain: Path, tmp_path: Path, place: str) -> None:
    """A path is reduced to its last part, which is looked up in the folder alone."""
    secret = tmp_path / "secret.mpk"
    shutil.copy(plain / "initial_params.mpk", secret)
    node = next(iter(SIZES)).removeprefix("client/")
    change(
        plain,
        lambda content: content["training_replies"]["0"][node].update(params_path=place),
    )
    with pytest.raises(TranscriptError):
        import_recording(plain, tmp_path / "run")


def test_a_link_to_outside_is_refused(plain: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.mpk"
    shutil.move(plain / "initial_params.mpk", secret)
    (plain / "initial_params.mpk").symlink_to(secret)
    with pytest.raises(TranscriptError, match="links to outside"):
        import_recording(plain, tmp_path / "run")


HOSTILE_JSON = [
    b"",
    b"null",
    b"[" * 100_000,
    b'{"training_replies": {}, "aggregated_params": {}}',
    b'{"training_replies": {"0": {}}, "aggregated_params": {"0": {"params_path": "a.mpk"}}}',
    b'{"training_replies": {"-1": {}}, "aggregated_params": {}}',
    b'{"training_replies": {"999999999": {}, "0": {}}, "aggregated_params": {}}',
    b'{"training_replies": {"0": {"\\u001b[31m": {"success": true}}}, "aggregated_params": {}}',
    b'{"training_replies": {"0": {"a": {"success": 1}}}, "aggregated_params": {}}',
    b'{"training_replies": {"0": {"a": {"success": true, "timing": {"t": NaN}}}}}',
]


@pytest.mark.parametrize("content", HOSTILE_JSON)
def test_a_damaged_breakpoint_is_an_error_of_the_user(
    plain: Path, tmp_path: Path, content: bytes
) -> None:
    breakpoint_of(plain).write_bytes(content)
    with pytest.raises(TranscriptError) as refused:
        import_recording(plain, tmp_path / "run")
    assert str(refused.value).isprintable()
    assert not (tmp_path / "run" / "transcript" / "rounds").exists()


@pytest.mark.parametrize("node", ["server", "a/b", "../x", "x" * 65, "\x1b[31m", ""])
def test_a_node_with_an_invalid_name_is_refused(plain: Path, tmp_path: Path, node: str) -> None:
    def rename(content: dict[str, Any]) -> None:
        replies = content["training_replies"]["1"]
        replies[node] = replies.pop(next(iter(replies)))

    change(plain, rename)
    with pytest.raises(TranscriptError):
        import_recording(plain, tmp_path / "run")


def test_parameters_of_another_model_are_refused(plain: Path, tmp_path: Path) -> None:
    path = next(plain.glob("params_NODE_30f183*.mpk"))
    content = msgpack.unpackb(path.read_bytes())
    content["0.bias"]["value"][2] = [2, 5]
    path.write_bytes(msgpack.packb(content))
    with pytest.raises(TranscriptError, match=r"has shape \(2, 5\), but \(10,\)"):
        import_recording(plain, tmp_path / "run")
