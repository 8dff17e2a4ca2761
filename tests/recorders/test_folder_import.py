"""A folder of weights by round and client becomes the run that it is of."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from overheard.archive.layout import committed_rounds
from overheard.archive.manifest import is_complete, read_manifest
from overheard.archive.reader import open_transcript, verify
from overheard.core.errors import AuditError, OutputError, TranscriptError
from overheard.core.messages import Broadcast, Missing, Update
from overheard.core.parties import Party, client
from overheard.core.recipe import Recipe
from overheard.core.task import Task
from overheard.recorders.folder_import import Imported, import_recording


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


def test_what_clients_send_is_what_they_changed(exported: Path, tmp_path: Path):
    imported = import_recording(exported, tmp_path / "run")
    assert imported == Imported(rounds=2, clients=2, updates=3, missing=0, left_out=())
    # 1.25 - 1, 0.5 - 0.5; 3 - 1, 1.5 - 0.5; -2 - 2, 0.5 - 0.5
    assert deltas(tmp_path / "run") == {
        (0, client(0)): [0.25, 0.0],
        (0, Party("client/ward.b")): [2.0, 1.0],
        (1, client(0)): [-4.0, 0.0],
    }
    assert verify(tmp_path / "run") == 6
    last = open_transcript(tmp_path / "run").messages[-1]
    assert isinstance(last.body, Broadcast)
    assert (last.round, float(last.body.weights["weight"][0, 0])) == (2, 7.0)
    assert last.readers == {client(0), Party("client/ward.b")}


def test_differences_are_taken_as_they_are(exported: Path, tmp_path: Path):
    import_recording(exported, tmp_path / "run", kind="differences")
    assert deltas(tmp_path / "run")[0, client(0)] == [1.25, 0.5]


@pytest.mark.parametrize(
    "names", [("round3", "3"), ("r0000", "R-1", "round_02"), ("1", "2", "3"), ("Round 0", "1")]
)
def test_rounds_may_be_called_as_is_customary(tmp_path: Path, names: tuple[str, ...]):
    if names[0] == "round3":
        names = tuple(f"round{number}" for number in range(11))
    for name in names:
        put(tmp_path / "exported" / name / "global.safetensors", model(float(len(name))))
        put(tmp_path / "exported" / name / "3.safetensors", model(0.0))
    import_recording(tmp_path / "exported", tmp_path / "run")
    assert committed_rounds(tmp_path / "run") == len(names)
    assert {who for _, who in deltas(tmp_path / "run")} == {client(3)}


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


def tell(folder: Path, **changes: object) -> None:
    told = {key: value for key, value in (ABOUT | changes).items() if value is not None}
    (folder / "about.json").write_text(json.dumps(told))


def test_what_is_told_beside_the_files_is_in_the_run(exported: Path, tmp_path: Path):
    tell(exported)
    imported = import_recording(exported, tmp_path / "run")
    assert (imported.clients, imported.updates, imported.missing) == (3, 3, 2)
    manifest = read_manifest(tmp_path / "run")
    assert manifest.framework == "FedML 0.9.6"
    assert manifest.task == Task((2,), ("benign", "malignant"))
    assert manifest.recipe == Recipe(0.1, 2, 8)
    assert [one.settings for one in manifest.defenses] == ["Gaussian(0.1)"]
    assert is_complete(tmp_path / "run")
    said = [
        (m.round, m.sender, m.body.reason if isinstance(m.body, Missing) else m.body.examples)
        for m in open_transcript(tmp_path / "run").messages
        if isinstance(m.body, Missing | Update)
    ]
    ward, third = Party("client/ward.b"), Party("client/c")
    # In round 0 not everyone was asked; in round 1 all three, and one file is there.
    assert said == [
        (0, client(0), 12), (0, ward, 40),
        (1, third, "timed out"), (1, ward, "no file of an answer was saved"),
        (1, client(0), 13),
    ]  # fmt: skip
    first = open_transcript(tmp_path / "run").messages[0]
    assert first.readers == {client(0), ward}


def test_the_same_can_be_told_in_toml(exported: Path, tmp_path: Path):
    (exported / "about.toml").write_text(
        'framework = "PySyft"\n[recipe]\nrate = 1\nepochs = 1\nbatch = 2\n'
    )
    import_recording(exported, tmp_path / "run")
    assert read_manifest(tmp_path / "run").recipe == Recipe(1.0, 1, 2)


def test_without_a_word_only_who_has_a_file_was_asked(exported: Path, tmp_path: Path):
    import_recording(exported, tmp_path / "run")
    manifest = read_manifest(tmp_path / "run")
    assert (manifest.framework, manifest.rounds) == ("not told", None)
    second = next(m for m in open_transcript(tmp_path / "run").messages if m.round == 1)
    assert second.readers == {client(0)}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"unheard": 1, "rounds": "2", "recipe": {"rate": 0.1}},
         ["unheard", "rounds", "recipe.epochs", "recipe.batch"]),
        ({"class_names": None, "participation": 2.0, "framework": "a\x1b"},
         ["class_names and input_shape go together", "participation lies", "framework must"]),
        ({"clients": ["0", "c"]}, ["ward.b has a file in round 0, and clients"]),
        ({"examples": {"nobody": 3}}, ["examples names client/nobody"]),
        ({"examples": {"0": -3}}, ["examples are 0 or more, got -3"]),
        ({"asked": [{"round": 9, "clients": []}]}, ["asked names round 9"]),
        ({"asked": [{"round": 0, "clients": ["0"]}]}, ["in round 0, and asked"]),
        ({"answers": [{"round": 1, "client": "c"}]}, ["has no file: say why"]),
        ({"answers": [{"round": 0, "client": "0", "missing": "x"}]}, ["and it has a file"]),
        ({"clients": ["0", "0"]}, ["clients names more than once: 0"]),
        ({"clients": ["a b"]}, ["rename the party"]),
        ({"tensors": ["nothing"]}, ["tensors names nothing", "bias, weight"]),
    ],
)  # fmt: skip
def test_all_that_cannot_be_true_is_told_at_once(
    exported: Path, tmp_path: Path, changes: dict[str, object], words: list[str]
):
    tell(exported, **changes)
    with pytest.raises(TranscriptError, match=r"about\.json") as refusal:
        import_recording(exported, tmp_path / "run")
    for word in words:
        assert word in str(refusal.value)
    assert not (tmp_path / "run").exists()


def test_counters_are_left_out_and_named(tmp_path: Path):
    folder, counter = tmp_path / "exported", {"steps": torch.tensor(3)}
    put(folder / "0" / "global.safetensors", model(1.0) | counter)
    put(folder / "0" / "a.npz", model(2.0) | counter)
    assert import_recording(folder, tmp_path / "run").left_out == ("steps",)
    assert read_manifest(tmp_path / "run").left_out == ("steps",)
    assert deltas(tmp_path / "run") == {(0, Party("client/a")): [1.0, 0.0]}


def test_the_order_of_the_model_and_what_is_no_parameter_of_it_can_be_told(
    exported: Path, tmp_path: Path
):
    tell(exported, tensors=["weight"])
    assert import_recording(exported, tmp_path / "run").left_out == ("bias",)
    (exported / "about.json").unlink()
    (exported / "about.toml").write_text('tensors = ["weight", "bias"]')
    import_recording(exported, tmp_path / "other")
    first = open_transcript(tmp_path / "other").messages[0].body
    assert isinstance(first, Broadcast)
    # The file itself has them by their alphabet.
    assert list(first.weights) == ["weight", "bias"]


def spoil_pickle(folder: Path) -> None:
    torch.save({}, folder / "round-0000" / "c.pt")


def spoil_objects(folder: Path) -> None:
    np.savez(folder / "round-0000" / "c.npz", weight=np.array([{}], object), bias=np.ones(1))


def spoil_zeros(folder: Path) -> None:
    path = folder / "round-0000" / "global.safetensors"
    path.unlink()
    np.savez_compressed(path.with_suffix(".npz"), weight=np.zeros(2**25, np.float32))


def spoil_range(folder: Path) -> None:
    """The two are finite, and their difference is not."""
    put(folder / "round-0000" / "global.safetensors", model(-3e38))
    put(folder / "round-0000" / "client-0.safetensors", model(3e38))


def adding(name: str, tensors: Mapping[str, Tensor]) -> Callable[[Path], None]:
    return lambda folder: put(folder / "round-0000" / name, tensors)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (spoil_pickle, ["c.pt", "save_file(torch.load('model.pt', weights_only=True)"]),
        (spoil_objects, ["c.npz", "'weight' holds |O", "never unpickled"]),
        (spoil_zeros, ["global.npz", "unpacks to 134217", "numpy.savez"]),
        (adding("c.npz", {"weight": torch.ones(1, 2)}), ["c.npz", "lacks bias"]),
        (adding("c.npz", model(1.0) | {"x": torch.ones(1)}), ["c.npz", "has x besides"]),
        (adding("c.npz", model(1.0) | {"bias": torch.ones(9)}), ["'bias' is of shape (9,)"]),
        (adding("c.npz", model(float("nan"))), ["holds NaN", "take the file away"]),
        (spoil_range, ["client-0.safetensors", "NaN or infinity", "does it hold weights?"]),
        (adding("0.npz", model(1.0)), ["both of client/0"]),
        (adding("a b.npz", model(1.0)), ["a b.npz", "rename the party"]),
        (adding("server.npz", model(1.0)), ["server.npz", "rename it"]),
        (adding("global.npz", model(1.0)), ["second global model", "keep one"]),
        (lambda folder: (folder / "round-0001" / "global.npz").unlink(),
         ["round-0001", "lacks the model that was sent out", "save it there"]),
        (lambda folder: (folder / "round-0001").rename(folder / "round-0009"),
         ["lacks round 1 yet has round 9"]),
        (lambda folder: (folder / "round-0002").rename(folder / "r1"), ["both round 1"]),
        (lambda folder: (folder / "round-0002").rename(folder / "last"),
         ["no folder of a round"]),
        (lambda folder: (folder / "notes.txt").touch(), ["notes.txt", "take it away"]),
    ],
)  # fmt: skip
def test_what_cannot_be_imported_is_refused_with_its_mend(
    exported: Path, tmp_path: Path, spoil: Callable[[Path], None], words: list[str]
):
    spoil(exported)
    with pytest.raises(TranscriptError) as refusal:
        import_recording(exported, tmp_path / "run")
    assert str(exported) in str(refusal.value)
    for word in words:
        assert word in str(refusal.value)


def test_a_folder_without_rounds_is_told_how_to_name_them(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(TranscriptError, match="name them round-0000, round-0001"):
        import_recording(tmp_path / "empty", tmp_path / "run")
    with pytest.raises(TranscriptError, match="cannot be read"):
        import_recording(tmp_path / "nowhere", tmp_path / "run")
    put(tmp_path / "late" / "5" / "global.npz", model(1.0))
    with pytest.raises(TranscriptError, match="begins with round 5"):
        import_recording(tmp_path / "late", tmp_path / "run")


def test_the_run_goes_elsewhere_than_into_what_is_read(exported: Path):
    with pytest.raises(OutputError, match="choose a folder for the run elsewhere"):
        import_recording(exported, exported / "run")


def test_an_import_that_was_stopped_is_whole_and_goes_on(exported: Path, tmp_path: Path):
    steps = list[tuple[str, int, int]]()

    def stop(what: str, done: int, total: int) -> None:
        steps.append((what, done, total))
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_recording(exported, tmp_path / "run", on_file=stop)
    # A broadcast and two updates; the broadcast and the update of the second round.
    assert steps[-1] == ("round 1", 5, 6)
    assert committed_rounds(tmp_path / "run") == 1
    assert verify(tmp_path / "run") == 3
    import_recording(exported, tmp_path / "whole")
    import_recording(exported, tmp_path / "run")
    for path in (tmp_path / "whole").rglob("*.*"):
        assert (
            path.read_bytes()
            == (tmp_path / "run" / path.relative_to(tmp_path / "whole")).read_bytes()
        )


def test_to_import_again_changes_nothing(exported: Path, tmp_path: Path):
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
def test_another_import_does_not_go_on_with_this_one(
    exported: Path, tmp_path: Path, change: Callable[[Path], None]
):
    import_recording(exported, tmp_path / "run")
    change(exported)
    with pytest.raises(OutputError, match="choose another folder, or remove this one"):
        import_recording(exported, tmp_path / "run")


def test_the_same_files_taken_for_something_else_are_another_import(
    exported: Path, tmp_path: Path
):
    import_recording(exported, tmp_path / "run")
    with pytest.raises(OutputError, match="other weights of client/0"):
        import_recording(exported, tmp_path / "run", kind="differences")


def test_a_link_out_of_the_folder_is_not_followed(exported: Path, tmp_path: Path):
    path = exported / "round-0000" / "client-0.safetensors"
    path.rename(tmp_path / "private.safetensors")
    path.symlink_to(tmp_path / "private.safetensors")
    with pytest.raises(AuditError, match="replace it by the file itself"):
        import_recording(exported, tmp_path / "run")


@pytest.mark.parametrize("kind", [torch.float16, torch.float64])
def test_numbers_of_any_width_are_subtracted_before_they_are_rounded(
    tmp_path: Path, kind: torch.dtype
):
    folder = tmp_path / "exported"
    # As float32 the second would be 1 like the first; as float16 the difference would be -2048.
    first, second = (1.0, 1.0 + 2**-40) if kind == torch.float64 else (2.0**11, 2.0**-10)
    put(folder / "0" / "global.npz", {"w": torch.tensor([first], dtype=kind)})
    put(folder / "0" / "a.npz", {"w": torch.tensor([second], dtype=kind)})
    import_recording(folder, tmp_path / "run")
    import_recording(folder, tmp_path / "run")
    update = open_transcript(tmp_path / "run").messages[1].body
    assert isinstance(update, Update)
    assert update.delta["w"].tolist() == [second - first]
