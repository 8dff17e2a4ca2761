"""Files of PyTorch, Keras and ONNX are read as they were saved, and never run."""

import os
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path

import h5py
import numpy as np
import onnx
import pytest
import torch
from onnx.helper import make_graph, make_model
from onnx.numpy_helper import from_array
from torch import Tensor, nn

from overheard.core.errors import TranscriptError
from overheard.recorders.exported_weights import read_exported_weights


def read(path: Path) -> Mapping[str, Tensor]:
    return read_exported_weights(path, path.parent).weights


def refusal(path: Path) -> str:
    with pytest.raises(TranscriptError) as refused:
        read(path)
    return str(refused.value)


def state_of_network() -> dict[str, Tensor]:
    network = nn.Sequential(
        nn.Conv2d(1, 3, 2), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(3, 2)
    )
    return network.state_dict()


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".bin", ".ckpt"])
@pytest.mark.parametrize("nested", [False, True])
def test_a_state_dict_of_torch_is_read_at_any_depth(
    tmp_path: Path, suffix: str, nested: bool
) -> None:
    state = state_of_network()
    steps = {number: {"exp_avg": torch.ones(3), "step": torch.ones(1)} for number in range(6)}
    saved = {"epoch": 3, "optimizer": {"state": steps}, "server": {"net": state}}
    path = tmp_path / f"model{suffix}"
    torch.save(saved if nested else state, path)
    exported = read_exported_weights(path, tmp_path)
    expected = {name: one for name, one in state.items() if one.is_floating_point()}
    assert exported.weights.keys() == expected.keys()
    assert all(torch.equal(exported.weights[name], one) for name, one in expected.items())
    assert exported.left_out == ("1.num_batches_tracked",)


def test_views_and_other_precisions_of_torch_are_read_as_they_are(tmp_path: Path) -> None:
    whole = torch.randn(6, 4)
    state = {
        "transposed": whole.t(),
        "part": whole[2:, 1:3],
        "half": whole.half(),
        "brain": whole.bfloat16(),
        "double": whole.double(),
        "scalar": torch.tensor(2.0),
        "parameter": nn.Parameter(whole),
    }
    torch.save(state, tmp_path / "model.pt")
    found = read(tmp_path / "model.pt")
    assert all(torch.equal(found[name], one) for name, one in state.items())
    assert [one.dtype for one in found.values()] == [one.dtype for one in state.values()]


class Evil:
    """Makes a folder when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, ("made",)


def test_what_a_file_of_torch_names_is_never_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    saved = {"args": Evil(), "net": OrderedDict(weight=torch.ones(2))}
    torch.save(saved, "model.pt")
    assert read(tmp_path / "model.pt").keys() == {"weight"}
    assert not (tmp_path / "made").exists()


def rewrite(path: Path, change: Callable[[bytes], bytes], member: str = "data.pkl") -> None:
    with zipfile.ZipFile(path) as archive:
        content = {one: archive.read(one) for one in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, change(data) if name.endswith(member) else data)


def test_a_tensor_that_its_file_does_not_have_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    torch.save({"w": torch.ones(100)}, path)
    rewrite(path, lambda data: data[:40], "data/0")
    assert "w is longer than its numbers" in refusal(path)


def test_a_small_file_that_claims_much_is_refused_before_memory_is_taken(
    tmp_path: Path,
) -> None:
    path = tmp_path / "model.pt"
    torch.save({"w": torch.ones(1).expand(2**40)}, path)
    assert "--max-unpacked" in refusal(path)


@pytest.mark.parametrize(
    ("save", "told"),
    [
        (lambda path: torch.save(nn.Linear(2, 2), path), "may be a whole network"),
        (
            lambda path: torch.save(
                {"w": torch.ones(2)}, path, _use_new_zipfile_serialization=False
            ),
            "before 1.6",
        ),
        (lambda path: path.write_bytes(pickle.dumps({"w": 1})), "before 1.6"),
        (lambda path: rewrite_saved(path, lambda data: data[:9]), "cannot be read"),
        (lambda path: rewrite_saved(path, lambda data: b"\x80\x02t."), "do not fit"),
    ],
)
def test_other_files_of_torch_are_refused(
    tmp_path: Path, save: Callable[[Path], None], told: str
) -> None:
    save(tmp_path / "model.pt")
    assert told in refusal(tmp_path / "model.pt")


def rewrite_saved(path: Path, change: Callable[[bytes], bytes]) -> None:
    torch.save({"w": torch.ones(2)}, path)
    rewrite(path, change)


KERNEL, BIAS = np.arange(6, dtype="float32").reshape(3, 2), np.ones(2, "float32")


def save_keras_2(path: Path, top: str = "") -> None:
    """Write a file as `model.save` of Keras 2 does, or `model.save_weights` without a top."""
    with h5py.File(path, "w") as file:
        for layer, (kernel, bias) in {
            "dense": (KERNEL, BIAS),
            "dense_1": (-KERNEL, -BIAS),
        }.items():
            file[f"{top}{layer}/{layer}/kernel:0"] = kernel
            file[f"{top}{layer}/{layer}/bias:0"] = bias
        file["optimizer_weights/Adam/m:0"] = KERNEL


def save_keras_3(path: Path) -> None:
    """Write a file as `model.save_weights` of Keras 3 does."""
    with h5py.File(path, "w") as file:
        for number in range(11):
            layer = f"layers/dense_{number}" if number else "layers/dense"
            file[f"{layer}/vars/0"], file[f"{layer}/vars/1"] = KERNEL + number, BIAS
        for number in range(4):
            file[f"layers/batch_normalization/vars/{number}"] = BIAS
        file["layers/embedding/vars/0"] = KERNEL
        file["layers/dropout/seed_generator/vars/0"] = np.ones(2, "uint32")
        file["optimizer/vars/0"] = KERNEL


@pytest.mark.parametrize("top", ["", "model_weights/"])
def test_layers_of_keras_2_have_their_names(tmp_path: Path, top: str) -> None:
    save_keras_2(tmp_path / "model.h5", top)
    found = read(tmp_path / "model.h5")
    assert list(found) == [
        "dense/bias:0",
        "dense/kernel:0",
        "dense_1/bias:0",
        "dense_1/kernel:0",
    ]
    assert np.array_equal(found["dense_1/kernel:0"], -KERNEL)


@pytest.mark.parametrize("suffix", [".weights.h5", ".keras"])
def test_variables_of_keras_3_get_the_names_of_their_layers(
    tmp_path: Path, suffix: str
) -> None:
    save_keras_3(tmp_path / "model.weights.h5")
    path = tmp_path / f"model{suffix}"
    if suffix == ".keras":
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(tmp_path / "model.weights.h5", "model.weights.h5")
    exported = read_exported_weights(path, tmp_path)
    found = exported.weights
    assert np.array_equal(found["dense_10/kernel"], KERNEL + 10)
    dense = [name for name in found if name.endswith("kernel")]
    assert dense == ["dense/kernel", *(f"dense_{number}/kernel" for number in range(1, 11))]
    assert {"embedding/embeddings", "batch_normalization/moving_variance"} <= found.keys()
    assert exported.left_out == ("dropout/seed_generator/kernel",)


def link(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["dense"] = h5py.ExternalLink("/etc/passwd", "/kernel")


def outside(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("w", (3,), "f4", external=[("/etc/passwd", 0, 12)])


def bomb(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("w", (2**31,), "f4", compression="gzip", chunks=(2**20,))


@pytest.mark.parametrize(
    ("save", "told"),
    [
        (link, "is a link"),
        (outside, "lies in another file"),
        (bomb, "--max-unpacked"),
        (lambda path: path.write_bytes(b"no file of Keras"), "cannot be read"),
    ],
)
def test_a_file_of_keras_that_reaches_further_is_refused(
    tmp_path: Path, save: Callable[[Path], None], told: str
) -> None:
    save(tmp_path / "model.h5")
    assert told in refusal(tmp_path / "model.h5")


def save_onnx(path: Path, change: Callable[[onnx.TensorProto], None] | None = None) -> None:
    stored = [from_array(KERNEL, "fc.weight"), from_array(np.ones(2, "int64"), "shape")]
    if change is not None:
        change(stored[0])
    path.write_bytes(make_model(make_graph([], "g", [], [], stored)).SerializeToString())


def test_initializers_of_onnx_are_read(tmp_path: Path) -> None:
    save_onnx(tmp_path / "model.onnx")
    exported = read_exported_weights(tmp_path / "model.onnx", tmp_path)
    assert np.array_equal(exported.weights["fc.weight"], KERNEL)
    assert exported.left_out == ("shape",)


def move_outside(stored: onnx.TensorProto) -> None:
    stored.data_location = onnx.TensorProto.EXTERNAL
    stored.external_data.add(key="location", value="../../etc/passwd")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (move_outside, "is in another file"),
        (lambda stored: stored.dims.append(3), "has more or fewer numbers"),
        (lambda stored: stored.dims.append(2**40), "--max-unpacked"),
    ],
)
def test_a_file_of_onnx_that_claims_more_is_refused(
    tmp_path: Path, change: Callable[[onnx.TensorProto], None], told: str
) -> None:
    save_onnx(tmp_path / "model.onnx", change)
    assert told in refusal(tmp_path / "model.onnx")


def test_other_files_are_no_onnx(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"\xff" * 40)
    assert "it is no file of ONNX" in refusal(tmp_path / "model.onnx")
