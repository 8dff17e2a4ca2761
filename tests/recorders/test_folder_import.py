"""A folder of weights by round and client becomes the run that it is of."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from overheard.archive.layout import count_committed_rounds, end_path
from overheard.archive.manifest import is_complete, read_manifest
from overheard.archive.reader import open_transcript, verify_transcript
from overheard.archive.run_end import has_ended
from overheard.consistency.proof import Reason, RecordingProof
from overheard.core.errors import AuditError, OutputError, TranscriptError
from overheard.core.messages import Broadcast, MissingReply, Update
from overheard.core.parties import Party, client
from overheard.core.recipe import Recipe
from overheard.core.task import Task
from overheard.disk.folder_lock import lock_folder
from overheard.disk.limits import VARIABLE
from overheard.recorders.exported_weights import read_exported_weights
from overheard.recorders.folder_import import ImportSummary, import_recording


def model(weight: float, bias: float = 0.5) -> dict[str, Tensor]:
    return {"weight": torch.tensor([[weight, 2.0]]), "bias": torch.tensor([bias])}


def put(path: Path, tensors: Mapping[str, Tensor]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".npz":
        np.savez(path, **{name: tensor.numpy() for name, tensor in tensors.items()})
    else:
        save_file(dict(tensors), path)


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """Two rounds and the final model; the second round's files are npz."""
    folder = tmp_path / "exported"
    put(folder / "round-0000" / "global.safetensors", model(1.0))
    put(folder / "round-0000" / "client-0.safetensors", model(1.25))
    put(folder / "round-0000" / "ward.b.npz", model(3.0, 1.5))
    put(folder / "round-0001" / "global.npz", model(2.0))
    put(folder / "round-0001" / "client-0.npz", model(-2.0))
    put(folder / "round-0002" / "global.safetensors", model(7.0))
    return folder


def deltas(run: Path) -> dict[tuple[int, Party], list[float]]:
    """First weight and bias of each update."""
    return {
        (m.round, m.sender): [float(m.body.delta["weight"][0, 0]), float(m.body.delta["bias"])]
        for m in open_transcript(run).messages
        if isinstance(m.body, Update)
    }


def test_updates_are_differences_from_the_broadcast(exported: Path, tmp_path: Path):
    imported = import_recording(exported, tmp_path / "run")
    proof = RecordingProof("cannot tell", Reason.UNKNOWN_STEP)
    assert replace(imported, proof=proof) == ImportSummary(
        rounds=2, clients=2, updates=3, missing=0, left_out=(), proof=proof
    )
    # 1.25 - 1, 0.5 - 0.5; 3 - 1, 1.5 - 0.5; -2 - 2, 0.5 - 0.5
    assert deltas(tmp_path / "run") == {
        (0, client(0)): [0.25, 0.0],
        (0, Party("client/ward.b")): [2.0, 1.0],
        (1, client(0)): [-4.0, 0.0],
    }
    assert verify_transcript(tmp_path / "run") == 6
    last = open_transcript(tmp_path / "run").messages[-1]
    assert (last.round, float(last.body.weights["weight"][0, 0])) == (2, 7.0)
    assert last.readers == {client(0), Party("client/ward.b")}


def test_two_imports_do_not_write_to_one_folder(exported: Path, tmp_path: Path):
    with lock_folder(tmp_path / "out"), pytest.raises(OutputError, match="another process"):
        import_recording(exported, tmp_path / "out")
    import_recording(exported, tmp_path / "out")
    assert verify_transcript(tmp_path / "out")


def test_differences_are_imported_unchanged(exported: Path, tmp_path: Path):
    import_recording(exported, tmp_path / "run", kind="differences")
    assert deltas(tmp_path / "run")[0, client(0)] == [1.25, 0.5]
    with pytest.raises(OutputError, match="other weights of client/0"):
        import_recording(exported, tmp_path / "run")


def test_gradients_are_steps_against_them_times_the_servers_rate(
    exported: Path, tmp_path: Path
):
    import_recording(exported, tmp_path / "run", kind="gradients", rate=0.5)
    # -0.5 times 1.25 and 0.5
    assert deltas(tmp_path / "run")[0, client(0)] == [-0.625, -0.25]
    (exported / "about.toml").write_text('kind = "gradients"\nrate = 0.5')
    import_recording(exported, tmp_path / "run")
    import_recording(exported, tmp_path / "run", kind="gradients")
    (exported / "about.toml").write_text('kind = "gradients"\nrate = 0.25')
    with pytest.raises(OutputError, match="other weights of client/0"):
        import_recording(exported, tmp_path / "run")
    with pytest.raises(
        TranscriptError, match=r"kind = 'gradients', but .* 'weights': state one"
    ):
        import_recording(exported, tmp_path / "run", kind="weights")


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ('kind = "gradients"', "requires rate"),
        ("rate = 0.1", 'rate requires kind = "gradients"'),
        ('kind = "gradients"\nrate = 0.0', "rate: must be above 0, got 0.0"),
        ('kind = "gradient"', "kind"),
        ('saved = "later"', "saved"),
        ('count_unit = "steps"', r"requires \[recipe\]"),
        ("[codes]\nscale = 0.0", r"codes\.scale\.\S+: must be above 0, got 0\.0"),
        ("[codes]\nscale = {w = 1.0}", "codes names w, which is no tensor of the model"),
        ('[[answers]]\nround = 0\nclient = "0"\nbegan_in = 1', "not sent before it"),
        ('[[answers]]\nround = 0\nclient = "0"\nbegan_in = -1', "not sent before it"),
    ],
)
def test_refuses_impossible_statements_about_replies(
    exported: Path, tmp_path: Path, about: str, words: str
):
    (exported / "about.toml").write_text(about)
    with pytest.raises(TranscriptError, match=words):
        import_recording(exported, tmp_path / "run")


TWICE = "more than once"
STEPS = {"count_unit": "steps", "recipe": {"rate": 0.1, "epochs": 1, "batch": 8}}


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"examples": {"0": 3, "client-0": 4}}, TWICE),
        ({"clients": ["ward.b", "0", "client/0"]}, TWICE),
        ({"clients": ["0"], "asked": [{"round": 0, "clients": ["0", "client0"]}]}, TWICE),
        ({"answers": [{"round": 0, "client": one} for one in ("0", "client_0")]}, TWICE),
        ({"clients": ["0", "ward.b", "hôpital", "ho\u0302pital"]}, TWICE),
        # No machine holds these numbers.
        ({"kind": "gradients", "rate": 10**400}, None),
        ({"codes": {"scale": 10**400}}, None),
        ({"codes": {"scale": 1, "zero_point": 10**400}}, None),
        ({"answers": [{"round": 0, "client": "0", "began_in": 10**400}]}, None),
        (STEPS | {"examples": {"0": 10**400}}, None),
    ],
)
def test_refuses_a_client_that_is_named_twice_and_numbers_that_are_too_large(
    exported: Path, tmp_path: Path, about: dict[str, object], words: str | None
):
    (exported / "about.json").write_text(json.dumps(about))
    with pytest.raises(TranscriptError, match=words):
        import_recording(exported, tmp_path / "run")


def test_a_reply_may_have_begun_from_an_earlier_model(exported: Path, tmp_path: Path):
    about = '[[answers]]\nround = 1\nclient = "0"\nbegan_in = '
    (exported / "about.toml").write_text(f"{about}0")
    import_recording(exported, tmp_path / "run")
    # -2 - 1, from the model of round 0, where the weight is 1
    assert deltas(tmp_path / "run")[1, client(0)] == [-3.0, 0.0]
    (exported / "about.toml").write_text(f"{about}1")
    with pytest.raises(OutputError, match="other weights of client/0"):
        import_recording(exported, tmp_path / "run")


@pytest.mark.parametrize("clients", [[], ["0", "a"]])
def test_global_models_alone_are_broadcasts_and_nobody_is_missing(
    tmp_path: Path, clients: list[str]
):
    folder = tmp_path / "exported"
    for number in range(3):
        put(folder / f"{number}" / "global.npz", model(float(number)))
    if clients:
        (folder / "about.json").write_text(json.dumps({"clients": clients}))
    imported = import_recording(folder, tmp_path / "run")
    assert (imported.rounds, imported.updates, imported.missing) == (2, 0, 0)
    assert "No client's weights were found" in imported.notes[0]
    messages = open_transcript(tmp_path / "run").messages
    assert models(tmp_path / "run") == [0.0, 1.0, 2.0]
    assert len(messages) == 3
    assert all(m.readers == {f"client/{name}" for name in clients} for m in messages)
    assert import_recording(folder, tmp_path / "run") == imported


def models(run: Path) -> list[float]:
    """First weight of each broadcast."""
    return [
        float(m.body.weights["weight"][0, 0])
        for m in open_transcript(run).messages
        if isinstance(m.body, Broadcast)
    ]


def test_a_model_saved_after_its_round_is_broadcast_in_the_next(tmp_path: Path):
    folder, other = tmp_path / "exported", tmp_path / "other"
    put(folder / "round-0000" / "global.npz", model(1.0))
    for number, after in ((1, 2.0), (2, 4.0)):
        put(folder / f"round-{number:04d}" / "global.npz", model(after))
        put(folder / f"round-{number:04d}" / "0.npz", model(after + 0.5))
    imported = import_recording(folder, tmp_path / "run", saved="after")
    assert (imported.rounds, imported.updates, imported.notes) == (2, 2, ())
    assert models(tmp_path / "run") == [1.0, 2.0, 4.0]
    # 2.5 - 1 and 4.5 - 2
    assert deltas(tmp_path / "run") == {(0, client(0)): [1.5, 0.0], (1, client(0)): [2.5, 0.0]}
    with pytest.raises(OutputError, match="contains another import"):
        import_recording(folder, tmp_path / "run")
    # Without the model that was sent first, the replies of the first round are left out.
    put(other / "round-0000" / "0.npz", model(9.0))
    for number in (0, 1, 2):
        (folder / f"round-{number:04d}").rename(other / f"round-{number + 1:04d}")
    put(other / "round-0000" / "global.npz", model(7.0))
    (other / "about.toml").write_text(
        'saved = "after"\n[[answers]]\nround = 0\nclient = "0"\nexamples = 3'
    )
    imported = import_recording(other, tmp_path / "left")
    assert models(tmp_path / "left") == [7.0, 1.0, 2.0, 4.0]
    assert imported.updates == 2
    assert "round-0000 were left out" in imported.notes[0]
    assert "number the rounds with replies from 1" in imported.notes[0]


def test_one_model_saved_after_its_round_is_not_enough(tmp_path: Path):
    put(tmp_path / "exported" / "0" / "global.npz", model(1.0))
    put(tmp_path / "exported" / "0" / "a.npz", model(2.0))
    with pytest.raises(TranscriptError, match="add that model as the only file of round-0000"):
        import_recording(tmp_path / "exported", tmp_path / "run", saved="after")


@pytest.mark.parametrize(("unit", "examples"), [("steps", 24), ("batches", 48)])
def test_numbers_of_examples_are_computed_from_steps_or_batches(
    exported: Path, tmp_path: Path, unit: str, examples: int
):
    recipe = {"rate": 0.1, "epochs": 2, "batch": 8}
    answers = [{"round": 1, "client": "0", "examples": 5}]
    about = {"count_unit": unit, "recipe": recipe, "examples": {"0": 6}, "answers": answers}
    (exported / "about.json").write_text(json.dumps(about))
    imported = import_recording(exported, tmp_path / "run")
    sizes = [
        m.body.examples
        for m in open_transcript(tmp_path / "run").messages
        if isinstance(m.body, Update) and m.sender == client(0)
    ]
    # 6 steps / 2 epochs, or 6 batches, of 8; then 5 steps / 2 epochs = 2.5, or 5 batches.
    assert sizes == [examples, 20 if unit == "steps" else 40]
    assert imported.notes == (
        f"Numbers of examples were computed from {unit}, as if all batches were full.",
    )


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_decodes_whole_number_codes(tmp_path: Path, suffix: str):
    folder = tmp_path / "exported"
    put(folder / "0" / f"global.{suffix}", model(1.0))
    codes = {
        "weight": torch.tensor([[14, -2]], dtype=torch.int8),
        "bias": torch.tensor([0.75]),
    }
    put(folder / "0" / f"a.{suffix}", codes)
    with pytest.raises(TranscriptError, match=r"whole-number codes .* \[codes\] of about.toml"):
        import_recording(folder, tmp_path / "refused")
    about = "[codes]\nscale = {weight = 0.25}\nzero_point = {weight = 4}"
    (folder / "about.toml").write_text(about)
    import_recording(folder, tmp_path / "run")
    # 0.25 * (14 - 4) - 1 = 1.5; the bias has no scale: 0.75 - 0.5
    assert deltas(tmp_path / "run") == {(0, Party("client/a")): [1.5, 0.25]}
    (folder / "about.toml").write_text("[codes]\nscale = 1")
    with pytest.raises(TranscriptError, match="'bias' holds no whole-number codes"):
        import_recording(folder, tmp_path / "other")
    (folder / "about.toml").write_text("[codes]\nscale = {}")
    with pytest.raises(TranscriptError, match=r"'weight' holds whole-number codes, but"):
        import_recording(folder, tmp_path / "other")


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_weights_are_counted_with_32_bits_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
):
    path = tmp_path / f"x{suffix}"
    put(path, {"w": torch.zeros(1000, dtype=torch.float16)})
    monkeypatch.setenv(VARIABLE, "4000")
    assert read_exported_weights(path, tmp_path).weights["w"].numel() == 1000
    monkeypatch.setenv(VARIABLE, "3999")
    with pytest.raises(TranscriptError, match=r"takes 4000 bytes of memory.*--max-unpacked"):
        read_exported_weights(path, tmp_path)


@pytest.mark.parametrize(
    "names", [("round3", "3"), ("r0000", "R-1", "round_02"), ("1", "2", "3"), ("Round 0", "1")]
)
def test_accepts_common_names_of_rounds(tmp_path: Path, names: tuple[str, ...]):
    if names[0] == "round3":
        names = tuple(f"round{number}" for number in range(11))
    for name in names:
        put(tmp_path / "exported" / name / "global.safetensors", model(float(len(name))))
        put(tmp_path / "exported" / name / "3.safetensors", model(0.0))
    import_recording(tmp_path / "exported", tmp_path / "run")
    assert count_committed_rounds(tmp_path / "run") == len(names)
    assert {sender for _, sender in deltas(tmp_path / "run")} == {client(3)}


def test_clients_may_be_named_in_any_script(exported: Path, tmp_path: Path):
    decomposed = "ho\u0302pital"
    for number, name in ((0, decomposed), (1, "نمی\u200cدانم")):
        put(exported / f"round-000{number}" / f"client-{name}.npz", model(0.0))
    write_about(
        exported, clients=["0", "ward.b", "hôpital", "نمی\u200cدانم"], asked=[], answers=[]
    )
    imported = import_recording(exported, tmp_path / "run")
    assert imported.notes == (
        "Names of files were brought to one form of Unicode (NFKC): they are client/hôpital.",
    )
    import_recording(exported, tmp_path / "run")
    senders = {sender for _, sender in deltas(tmp_path / "run")}
    assert {"client/hôpital", "client/نمی\u200cدانم"} < senders
    put(exported / "round-0000" / "client-hôpital.npz", model(0.0))
    with pytest.raises(TranscriptError, match="are both of client/hôpital"):
        import_recording(exported, tmp_path / "other")


ABOUT = {
    "framework": "FedML 0.9.6",
    "model": "LeNet-5",
    "class_names": ["benign", "malignant"],
    "input_shape": [2],
    "rounds": 2,
    "participation": 0.5,
    "recipe": {"rate": 0.1, "epochs": 2, "batch": 8},
    "defenses": [
        {
            "name": "noise",
            "settings": "Gaussian(0.1)",
            "enforced_at": "client",
            "switched_off_by": "the server's owner",
        }
    ],
    "clients": ["0", "ward.b", "c"],
    "asked": [{"round": 0, "clients": ["client-0", "ward.b"]}],
    "examples": {"0": 12},
    "answers": [
        {"round": 0, "client": "ward.b", "examples": 40, "metrics": {"loss": 0.5}},
        {"round": 1, "client": "0", "examples": 13},
        {"round": 1, "client": "c", "missing": "timed out"},
    ],
}


def write_about(folder: Path, **changes: object) -> None:
    content = {key: value for key, value in (ABOUT | changes).items() if value is not None}
    (folder / "about.json").write_text(json.dumps(content))


def test_imports_the_metadata_of_about(exported: Path, tmp_path: Path):
    write_about(exported)
    imported = import_recording(exported, tmp_path / "run")
    assert (imported.clients, imported.updates, imported.missing) == (3, 3, 2)
    manifest = read_manifest(tmp_path / "run")
    assert manifest.framework == "FedML 0.9.6"
    assert manifest.task == Task((2,), ("benign", "malignant"))
    assert manifest.recipe == Recipe(0.1, 2, 8)
    assert [one.settings for one in manifest.defenses] == ["Gaussian(0.1)"]
    assert is_complete(tmp_path / "run")
    replies = [
        (
            m.round,
            m.sender,
            m.body.reason if isinstance(m.body, MissingReply) else m.body.examples,
        )
        for m in open_transcript(tmp_path / "run").messages
        if isinstance(m.body, MissingReply | Update)
    ]
    ward, third = Party("client/ward.b"), Party("client/c")
    # In round 0 two clients were sampled; in round 1 all three, with one file.
    assert replies == [
        (0, client(0), 12), (0, ward, 40),
        (1, third, "timed out"), (1, ward, "no file of an answer was saved"),
        (1, client(0), 13),
    ]  # fmt: skip
    first = open_transcript(tmp_path / "run").messages[0]
    assert first.readers == {client(0), ward}


def test_imports_stated_sampling_and_marks_the_end(exported: Path, tmp_path: Path):
    (exported / "about.toml").write_text(
        """participation = 0.5
sampling = "poisson"
recipe = {rate = 1, epochs = 1, batch = 2}
[[defenses]]
name = "DP-SGD"
settings = "DP-SGD"
enforced_at = "client"
switched_off_by = "each client"
mechanism = { noise_multiplier = 1.0, clip = 1.0, delta = 1e-5, noised_at = "client", \
bounded_at = "client", moves = 1.0, unit = "record", steps = 6, record_sampling = "poisson", \
record_rate = 0.25 }
""".replace("\\\n", "")
    )
    import_recording(exported, tmp_path / "run")
    manifest = read_manifest(tmp_path / "run")
    assert (manifest.participation, manifest.sampling) == (0.5, "poisson")
    assert manifest.recipe == Recipe(1.0, 1, 2)
    noise = manifest.defenses[0].mechanism
    assert (noise.record_sampling, noise.record_rate, noise.relation) == (
        "poisson", 0.25, "add-or-remove",
    )  # fmt: skip
    assert has_ended(tmp_path / "run")


def test_without_about_only_clients_with_a_file_were_sampled(exported: Path, tmp_path: Path):
    import_recording(exported, tmp_path / "run")
    manifest = read_manifest(tmp_path / "run")
    assert (manifest.framework, manifest.rounds) == ("not told", None)
    second = next(m for m in open_transcript(tmp_path / "run").messages if m.round == 1)
    assert second.readers == {client(0)}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"unknown": 1, "rounds": "2", "recipe": {"rate": 0.1}},
         ["unknown", "rounds", "recipe.epochs", "recipe.batch"]),
        ({"class_names": None, "framework": "a\x1b"},
         ["class_names and input_shape require", "framework must"]),
        ({"participation": 2.0, "rounds": -1},
         ["participation: must be at most 1", "rounds: must be 0 or more"]),
        ({"clients": ["0", "c"]}, ["ward.b has a file in round 0, but clients"]),
        ({"examples": {"nobody": 3}}, ["examples names client/nobody"]),
        ({"examples": {"0": -3}}, ["examples must be 0 or more", "got -3"]),
        ({"asked": [{"round": 9, "clients": []}]}, ["asked names round 9"]),
        ({"asked": [{"round": 0, "clients": ["0"]}]}, ["in round 0, but asked"]),
        ({"answers": [{"round": 1, "client": "c"}]}, ["has no file: give the reason"]),
        ({"answers": [{"round": 0, "client": "0", "missing": "x"}]}, ["but it has a file"]),
        ({"clients": ["0", "0"]}, ["clients names more than once: 0"]),
        ({"clients": ["a b"]}, ["rename the party"]),
        ({"tensors": ["nothing"]}, ["tensors names nothing", "bias, weight"]),
        ({"class_names": ["a"]}, ["a task needs 2 classes or more"]),
        ({"input_shape": [0]}, ["lengths of a shape must be 1 or more"]),
        ({"vocabulary": 0}, ["a vocabulary has 1 token or more"]),
        ({"rounds": 10**9}, ["rounds: must be below 1000000000"]),
        ({"asked": [{"round": -1, "clients": []}]}, ["asked.0.round: must be 0 or more"]),
        ({"answers": [{"round": -1, "client": "0"}]}, ["answers.0.round: must be 0 or more"]),
        ({"answers": [{"round": 1, "client": "c", "missing": "x", "examples": 3}]},
         ["the reply of c in round 1 is missing, and what it reports"]),
    ],
)  # fmt: skip
def test_reports_all_contradictions_at_once(
    exported: Path, tmp_path: Path, changes: dict[str, object], words: list[str]
):
    write_about(exported, **changes)
    with pytest.raises(TranscriptError, match=r"about\.json") as refusal:
        import_recording(exported, tmp_path / "run")
    for word in words:
        assert word in str(refusal.value)
    assert not (tmp_path / "run").exists()


def test_omits_and_names_counters(tmp_path: Path):
    folder, counter = tmp_path / "exported", {"steps": torch.tensor(3)}
    put(folder / "0" / "global.safetensors", model(1.0) | counter)
    put(folder / "0" / "a.npz", model(2.0) | counter)
    assert import_recording(folder, tmp_path / "run").left_out == ("steps",)
    assert read_manifest(tmp_path / "run").left_out == ("steps",)
    assert deltas(tmp_path / "run") == {(0, Party("client/a")): [1.0, 0.0]}


def test_about_can_select_and_order_the_models_tensors(exported: Path, tmp_path: Path):
    write_about(exported, tensors=["weight"])
    assert import_recording(exported, tmp_path / "run").left_out == ("bias",)
    (exported / "about.json").unlink()
    (exported / "about.toml").write_text('tensors = ["weight", "bias"]')
    import_recording(exported, tmp_path / "other")
    first = open_transcript(tmp_path / "other").messages[0].body
    # The file has them in alphabetical order.
    assert list(first.weights) == ["weight", "bias"]


def damage_pickle(folder: Path) -> None:
    torch.save({}, folder / "round-0000" / "c.pt")


def damage_objects(folder: Path) -> None:
    np.savez(folder / "round-0000" / "c.npz", weight=np.array([{}], object), bias=np.ones(1))


def damage_zeros(folder: Path) -> None:
    path = folder / "round-0000" / "global.safetensors"
    path.unlink()
    np.savez_compressed(path.with_suffix(".npz"), weight=np.zeros(2**25, np.float32))


def damage_range(folder: Path) -> None:
    """Write finite weights whose difference overflows."""
    put(folder / "round-0000" / "global.safetensors", model(-3e38))
    put(folder / "round-0000" / "client-0.safetensors", model(3e38))


def add_file(name: str, tensors: Mapping[str, Tensor]) -> Callable[[Path], None]:
    return lambda folder: put(folder / "round-0000" / name, tensors)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (damage_pickle, ["c.pt", "torch.load('model.pt', map_location='cpu', weights_only"]),
        (damage_objects, ["c.npz", "'weight' has dtype |O", "never unpickled"]),
        (damage_zeros, ["global.npz", "unpacks to 134217", "--max-unpacked"]),
        (add_file("c.npz", {"weight": torch.ones(1, 2)}), ["c.npz", "missing bias"]),
        (add_file("c.npz", model(1.0) | {"x": torch.ones(1)}), ["c.npz", "extra x"]),
        (add_file("c.npz", model(1.0) | {"bias": torch.ones(9)}), ["'bias' has shape (9,)"]),
        (add_file("c.npz", model(float("nan"))), ["holds NaN", "remove the file"]),
        (damage_range, ["client-0.safetensors", "NaN or infinity", "that it contains weights"]),
        (add_file("0.npz", model(1.0)), ["both of client/0"]),
        (add_file("a b.npz", model(1.0)), ["a b.npz", "rename the party"]),
        (add_file("server.npz", model(1.0)), ["server.npz", "rename it"]),
        (add_file("global.npz", model(1.0)), ["second global model", "keep one"]),
        (lambda folder: (folder / "round-0001" / "global.npz").unlink(),
         ["round-0001", "does not contain the broadcast model", "save it there"]),
        (lambda folder: (folder / "round-0001").rename(folder / "round-0009"),
         ["has no round 1, but a round 9"]),
        (lambda folder: (folder / "round-0002").rename(folder / "r1"), ["both round 1"]),
        (lambda folder: (folder / "round-0002").rename(folder / "last"),
         ["no folder of a round"]),
        (lambda folder: (folder / "notes.txt").touch(), ["notes.txt", "remove"]),
    ],
)  # fmt: skip
def test_refuses_invalid_files_and_says_what_to_do(
    exported: Path, tmp_path: Path, damage: Callable[[Path], None], words: list[str]
):
    damage(exported)
    with pytest.raises(TranscriptError) as refusal:
        import_recording(exported, tmp_path / "run")
    assert str(exported) in str(refusal.value)
    for word in words:
        assert word in str(refusal.value)


def test_explains_how_to_name_folders_of_rounds(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(TranscriptError, match="name them round-0000, round-0001"):
        import_recording(tmp_path / "empty", tmp_path / "run")
    with pytest.raises(TranscriptError, match="cannot be read"):
        import_recording(tmp_path / "nowhere", tmp_path / "run")
    put(tmp_path / "late" / "5" / "global.npz", model(1.0))
    with pytest.raises(TranscriptError, match="begins with round 5"):
        import_recording(tmp_path / "late", tmp_path / "run")


def test_refuses_to_write_into_the_imported_folder(exported: Path):
    with pytest.raises(OutputError, match="choose a folder outside it"):
        import_recording(exported, exported / "run")
    link = exported.parent / "loop"
    link.symlink_to(link.name)
    with pytest.raises(OutputError, match="symbolic links"):
        import_recording(exported, link)


def test_continues_an_interrupted_import(exported: Path, tmp_path: Path):
    steps = list[tuple[str, int, int]]()

    def stop(what: str, done: int, total: int) -> None:
        steps.append((what, done, total))
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_recording(exported, tmp_path / "run", on_progress=stop)
    # A broadcast and two updates; the broadcast and the update of the second round.
    assert steps[-1] == ("round 1", 5, 6)
    assert count_committed_rounds(tmp_path / "run") == 1
    assert verify_transcript(tmp_path / "run") == 3
    import_recording(exported, tmp_path / "whole")
    import_recording(exported, tmp_path / "run")
    for path in (tmp_path / "whole").rglob("*.*"):
        if path.name == end_path(Path()).name:
            continue  # it names the folder
        assert (
            path.read_bytes()
            == (tmp_path / "run" / path.relative_to(tmp_path / "whole")).read_bytes()
        )


def test_importing_again_changes_nothing(exported: Path, tmp_path: Path):
    once = import_recording(exported, tmp_path / "run")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    assert import_recording(exported, tmp_path / "run") == once
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")} == before


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: put(folder / "round-0000" / "global.safetensors", model(1.5)),
        lambda folder: put(folder / "round-0000" / "client-0.safetensors", model(9.0)),
        lambda folder: (folder / "round-0000" / "ward.b.npz").rename(
            folder / "round-0001" / "ward.b.npz"
        ),
        lambda folder: (folder / "about.toml").write_text("examples = {0 = 7}"),
        lambda folder: (folder / "about.toml").write_text('model = "another"'),
    ],
)  # fmt: skip
def test_refuses_to_continue_another_import(
    exported: Path, tmp_path: Path, change: Callable[[Path], None]
):
    import_recording(exported, tmp_path / "run")
    change(exported)
    with pytest.raises(OutputError, match="choose another folder, or remove this one"):
        import_recording(exported, tmp_path / "run")


def test_refuses_a_model_of_too_many_tensors(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("overheard.recorders.exported_weights.MAX_TENSORS", 0)
    with pytest.raises(TranscriptError, match="at most 0 are read: export fewer"):
        import_recording(exported, tmp_path / "run")


def test_does_not_follow_links_out_of_the_folder(exported: Path, tmp_path: Path):
    path = exported / "round-0000" / "client-0.safetensors"
    path.rename(tmp_path / "private.safetensors")
    path.symlink_to(tmp_path / "private.safetensors")
    with pytest.raises(AuditError, match="replace the link by the file itself"):
        import_recording(exported, tmp_path / "run")


@pytest.mark.parametrize("kind", [torch.float16, torch.float64])
def test_subtracts_before_rounding(tmp_path: Path, kind: torch.dtype):
    folder = tmp_path / "exported"
    # As float32 the second would be 1 like the first; as float16 the difference would be -2048.
    first, second = (1.0, 1.0 + 2**-40) if kind == torch.float64 else (2.0**11, 2.0**-10)
    put(folder / "0" / "global.npz", {"w": torch.tensor([first], dtype=kind)})
    put(folder / "0" / "a.npz", {"w": torch.tensor([second], dtype=kind)})
    import_recording(folder, tmp_path / "run")
    import_recording(folder, tmp_path / "run")
    update = open_transcript(tmp_path / "run").messages[1].body
    assert update.delta["w"].tolist() == [second - first]
