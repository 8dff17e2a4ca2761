"""The lines that convert files of other formats work, and give what can be imported."""

import pickle
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import joblib
import numpy as np
import pytest
import torch
from flwr.common import ndarrays_to_parameters
from sklearn.linear_model import LogisticRegression
from torch import nn

from overheard.core.errors import TranscriptError
from overheard.recorders.exported_weights import read_exported_weights
from overheard.recorders.exports.conversions import (
    _TURNED,
    CONVERSIONS,
    FLOWER_PARAMETERS_LINE,
    OBJECT_ARRAY_LINE,
    explain_conversion,
)
from overheard.recorders.folder_import import import_recording

PAGE = (Path(__file__).parents[3] / "docs" / "import.md").read_text()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the lines of the messages are run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def line_of(suffix: str) -> str:
    """Return the line that the refusal of such a file gives."""
    return explain_conversion(suffix).split("`")[1]


def refusal(folder: Path, save: Callable[[Path], None], suffix: str) -> str:
    place = folder / "exported" / "round-0000"
    place.mkdir(parents=True)
    save(place / f"global{suffix}")
    with pytest.raises(TranscriptError) as refused:
        import_recording(folder / "exported", folder / "run")
    return str(refused.value)


def converted(folder: Path, name: str = "model.npz") -> dict[str, np.ndarray]:
    found = read_exported_weights(folder / name, folder)
    return {name: tensor.numpy() for name, tensor in found.weights.items()}


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".bin", ".ckpt"])
@pytest.mark.parametrize("key", ["", "model", "model_state_dict", "net"])
def test_the_line_for_torch_finds_the_state_dict(folder: Path, suffix: str, key: str):
    state = nn.Linear(4, 3).state_dict()
    steps = {"state": {0: {"momentum": torch.ones(3)}}, "param_groups": [{"lr": 0.1}]}
    rest = {
        "train_conf": {"train": {"model": "Net"}},
        "optimizer": steps,
        "loss": torch.ones(1),
    }
    torch.save(OrderedDict({key: state} | rest) if key else state, f"model{suffix}")
    exec(line_of(suffix), {})
    found = converted(folder, "model.safetensors")
    assert found.keys() == {"weight", "bias"}
    assert np.array_equal(found["weight"], state["weight"].numpy())


def test_the_line_for_torch_finds_a_state_dict_at_any_depth(folder: Path):
    network = nn.Linear(4, 3)
    optimizer = torch.optim.AdamW(network.parameters())  # keeps three tensors a parameter
    network(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    state = network.state_dict()
    saved = {"optimizer": optimizer.state_dict(), "server": {"round": 1, "net": {"w": state}}}
    torch.save(saved, "model.pt")
    exec(line_of(".pt"), {})
    assert converted(folder, "model.safetensors").keys() == {"weight", "bias"}


def test_the_line_for_torch_takes_a_list_of_tensors(folder: Path):
    torch.save([one.detach() for one in nn.Linear(4, 3).parameters()], "model.pt")
    exec(line_of(".pt"), {})
    shapes = {name: one.shape for name, one in converted(folder, "model.safetensors").items()}
    assert shapes == {"0": (3, 4), "1": (3,)}


def test_the_line_for_torch_keeps_tied_and_transposed_tensors(folder: Path):
    shared = torch.arange(6.0).reshape(2, 3)
    torch.save({"a": shared, "b": shared, "c": shared.T}, "model.pt")
    exec(line_of(".pt"), {})
    found = converted(folder, "model.safetensors")
    assert found["a"].tolist() == found["b"].tolist() == shared.tolist()
    assert found["c"].tolist() == shared.T.tolist()


def test_a_file_of_torch_is_refused_with_its_line(folder: Path):
    said = refusal(folder, lambda path: torch.save({}, path), ".pt")
    assert line_of(".pt") in said
    assert "saved['model']" in said


@pytest.mark.parametrize("suffix", [".pkl", ".pickle", ".joblib", ".npy"])
@pytest.mark.parametrize("is_named", [True, False])
def test_the_lines_for_pickles_take_dicts_and_lists_of_arrays(
    folder: Path, suffix: str, is_named: bool
):
    arrays = [np.ones((2, 3)), np.arange(4.0)]
    saved = dict(zip(("w", "b"), arrays, strict=True)) if is_named else arrays
    if suffix == ".joblib":
        joblib.dump(saved, "model.joblib")
    elif suffix == ".npy":
        content = np.empty((), object) if is_named else np.empty(2, object)
        content[...] = saved
        np.save("model.npy", content, allow_pickle=True)
    else:
        Path(f"model{suffix}").write_bytes(pickle.dumps(saved))
    exec(line_of(suffix), {})
    found = converted(folder)
    assert list(found) == (["w", "b"] if is_named else ["arr_0", "arr_1"])
    assert found[list(found)[1]].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_the_line_for_joblib_takes_a_model_of_scikit_learn(folder: Path):
    model = LogisticRegression().fit(np.eye(3), [0, 1, 2])
    joblib.dump(model, "model.joblib")
    exec(line_of(".joblib"), {})
    assert np.array_equal(converted(folder)["coef_"], model.coef_)


def test_names_flowers_parameters_and_converts_them(folder: Path):
    arrays = [np.ones((2, 3), np.float32), np.zeros(2, np.float32)]

    def save(path: Path) -> None:
        # As aggregate_fit returns them: parameters and metrics.
        np.savez(path, *(ndarrays_to_parameters(arrays), {}))  # type: ignore[arg-type]

    said = refusal(folder, save, ".npz")
    assert "it holds Flower's Parameters" in said
    assert FLOWER_PARAMETERS_LINE in said
    (folder / "exported" / "round-0000" / "global.npz").rename("model.npz")
    exec(FLOWER_PARAMETERS_LINE, {})
    assert {name: one.shape for name, one in converted(folder, "converted.npz").items()} == {
        "arr_0": (2, 3),
        "arr_1": (2,),
    }


def test_converts_an_npz_with_a_list_of_arrays(folder: Path):
    saved = np.empty(2, object)
    saved[:] = [np.ones((2, 3)), np.zeros(2)]
    said = refusal(folder, lambda path: np.savez(path, saved), ".npz")
    assert "'arr_0' has dtype |O: it holds Python objects" in said
    assert OBJECT_ARRAY_LINE in said
    np.savez("model.npz", saved)
    exec(OBJECT_ARRAY_LINE, {})
    assert list(converted(folder, "converted.npz")) == ["arr_0", "arr_1"]


def test_kernels_are_turned_to_the_order_of_torch():
    image, generator = torch.rand(1, 2, 5, 5), np.random.default_rng(0)
    value = generator.normal(size=(3, 2, 2, 4)).astype(np.float32)
    kernel = torch.tensor(eval(_TURNED, {"np": np, "value": value}))
    assert kernel.shape == (4, 2, 3, 2)
    # The output at the corner, by the definition of Keras: sum over height, width and input.
    corner = np.einsum("chw,hwco->o", image[0, :, :3, :2].numpy(), value)
    assert np.allclose(nn.functional.conv2d(image, kernel)[0, :, 0, 0], corner, atol=1e-5)
    value = value[0, 0]
    assert np.array_equal(eval(_TURNED, {"np": np, "value": value}), value.T)


@pytest.mark.parametrize("suffix", [".h5", ".keras"])
def test_the_line_for_keras_names_and_turns_kernels(folder: Path, suffix: str):
    keras = pytest.importorskip("keras", reason="Keras is not installed")
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3)])
    model.save(f"model{suffix}")
    exec(line_of(suffix), {})
    kernel, bias = (one for one in converted(folder).values())
    assert np.array_equal(kernel, model.get_weights()[0].T)
    assert bias.shape == (3,)


def test_the_line_for_onnx_takes_the_weights(folder: Path):
    onnx = pytest.importorskip("onnx", reason="ONNX is not installed")
    weight = np.ones((3, 4), np.float32)
    node = onnx.helper.make_node("Gemm", ["x", "weight"], ["y"], transB=1)
    graph = onnx.helper.make_graph(
        [node], "net", [], [], [onnx.numpy_helper.from_array(weight, "weight")]
    )
    onnx.save(onnx.helper.make_model(graph), "model.onnx")
    exec(line_of(".onnx"), {})
    assert np.array_equal(converted(folder)["weight"], weight)


def test_the_line_for_flax_names_and_turns_kernels(folder: Path):
    serialization = pytest.importorskip("flax.serialization", reason="Flax is not installed")
    kernel = np.arange(12, dtype=np.float32).reshape(4, 3)
    tree = {"params": {"Dense_0": {"kernel": kernel, "bias": np.zeros(3, np.float32)}}}
    (folder / "model.msgpack").write_bytes(serialization.msgpack_serialize(tree))
    exec(line_of(".msgpack"), {})
    found = converted(folder)
    assert np.array_equal(found["params.Dense_0.kernel"], kernel.T)
    assert found["params.Dense_0.bias"].shape == (3,)


@pytest.mark.parametrize(
    ("suffix", "words"),
    [
        (".h5", ["get_weights", "np.savez", "inputs x outputs"]),
        (".keras", ["'model.keras'", "model.load_weights"]),
        (".onnx", ["to_array", "MatMul"]),
        (".tflite", ["whole-number codes", "convert the Keras model"]),
        (".msgpack", ["msgpack_restore", "inputs x outputs"]),
        (".csv", ["is no file of weights (.safetensors, .npz, ", "numpy.savez"]),
    ],
)
def test_a_refusal_says_how_to_convert(folder: Path, suffix: str, words: list[str]):
    said = refusal(folder, lambda path: path.write_bytes(b"\x89HDF\r\n\x1a\n"), suffix)
    for word in words:
        assert word in said


def test_a_file_beside_the_folders_of_rounds_is_told_its_place(folder: Path):
    (folder / "exported").mkdir()
    np.savez(folder / "exported" / "round-1-weights.npz", np.ones(2))
    with pytest.raises(TranscriptError, match=r"move it to round-0001/global\.npz"):
        import_recording(folder / "exported", folder / "run")


def test_the_documentation_gives_the_same_lines():
    lines = [one.line for one in CONVERSIONS if one.line]
    for line in (*lines, FLOWER_PARAMETERS_LINE, OBJECT_ARRAY_LINE):
        assert line in PAGE
