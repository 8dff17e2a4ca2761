"""Hostile files of models that PyTorch, Keras and ONNX save."""

import io
import pickle
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import onnx
import torch
from onnx.helper import make_graph, make_model
from onnx.numpy_helper import from_array

from tests.hostile.changes import READ_OR_REFUSED, Change, cut, written

SMALL = {"weight": np.ones((3, 2), np.float32), "bias": np.ones(3, np.float32)}
"""The tensors of the intact files."""


def save_models(folder: Path) -> None:
    """Write two models of each framework, each series in a folder of its own."""
    for number in (1, 2):
        for kind, save in {"torch": _torch, "keras": _keras, "onnx": _onnx}.items():
            place = folder / f"published-{kind}"
            place.mkdir(exist_ok=True)
            suffix = {"torch": ".pt", "keras": ".h5", "onnx": ".onnx"}[kind]
            (place / f"model_{number}{suffix}").write_bytes(save(SMALL))


def _torch(tensors: dict[str, np.ndarray]) -> bytes:
    page = io.BytesIO()
    torch.save({name: torch.from_numpy(one) for name, one in tensors.items()}, page)
    return page.getvalue()


def _keras(tensors: dict[str, np.ndarray]) -> bytes:
    page = io.BytesIO()
    with h5py.File(page, "w") as file:
        for name, one in tensors.items():
            file[name] = one
    return page.getvalue()


def _onnx(tensors: dict[str, np.ndarray]) -> bytes:
    stored = [from_array(one, name) for name, one in tensors.items()]
    content: bytes = make_model(make_graph([], "g", [], [], stored)).SerializeToString()
    return content


WRONG = {
    "NaN": {**SMALL, "bias": np.full(3, np.nan, np.float32)},
    "another shape": {**SMALL, "bias": np.ones(4, np.float32)},
    "another name": {"other": SMALL["bias"], "weight": SMALL["weight"]},
    "no tensor": {},
    "whole numbers": {**SMALL, "bias": np.ones(3, np.int64)},
    "a long name": {**SMALL, "n" * 100_000: np.ones(3, np.float32)},
    "a name with control characters": {**SMALL, "\x1b[31m": np.ones(3, np.float32)},
    "many tensors": SMALL | {f"n{number}": np.ones(1, np.float32) for number in range(2000)},
}


def _of_any(content: bytes, save: Callable[[dict[str, np.ndarray]], bytes]) -> Iterator[Change]:
    for name, tensors in WRONG.items():
        kind = "many items" if name == "many tensors" else "wrong type"
        yield written(kind, name, save(tensors), READ_OR_REFUSED)
    yield written("wrong type", "text", b"text")
    yield from cut(content)


class _Runs:
    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, str]]:
        return open, ("RAN", "w")


def torch_file(content: bytes) -> Iterator[Change]:
    """Iterate over changes of a file of PyTorch."""
    yield from _of_any(content, _torch)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {one: archive.read(one) for one in archive.namelist()}
    program = next(one for one in members if one.endswith("data.pkl"))
    for name, code in {
        "a call of code": pickle.dumps({"weight": _Runs()}, 2),
        "a million marks": b"\x80\x02" + b"(" * 1_000_000 + b".",
        "nested lists": b"\x80\x02" + b"]" * 200_000 + b"a" * 199_999 + b".",
        "a number of 100,000 digits": b"I" + b"9" * 100_000 + b"\n.",
        "a large array of bytes": pickle.dumps(bytearray(b"x"), 2).replace(b"x", b"y"),
        "a dict in itself": b"\x80\x02}q\x00X\x01\x00\x00\x00ah\x00s.",
    }.items():
        yield written("nesting", name, _zip({**members, program: code}), READ_OR_REFUSED)
    lying = io.BytesIO()
    torch.save({"weight": torch.ones(1).expand(2**40), "bias": torch.ones(3)}, lying)
    yield written("lying header", "2^40 numbers of one", lying.getvalue())
    packed = _zip({**members, program: b"\0" * 300_000_000}, zipfile.ZIP_DEFLATED)
    yield written("unpack ratio", "300 MB of zeros", packed)


def _zip(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    page = io.BytesIO()
    with zipfile.ZipFile(page, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return page.getvalue()


def keras_file(content: bytes) -> Iterator[Change]:
    """Iterate over changes of a file of Keras."""
    yield from _of_any(content, _keras)

    def change(edit: Callable[[h5py.File], object]) -> bytes:
        page = io.BytesIO()
        with h5py.File(page, "w") as file:
            edit(file)
        return page.getvalue()

    def nested(file: h5py.File) -> None:
        group: h5py.Group = file
        for _ in range(200):
            group = group.create_group("g")
        group["weight"] = SMALL["weight"]

    def itself(file: h5py.File) -> None:
        file["weight"] = SMALL["weight"]
        file["again"] = file["/"]

    for name, edit in {
        "a link to a file": lambda file: file.__setitem__(
            "weight", h5py.ExternalLink("/etc/passwd", "/x")
        ),
        "numbers in a file": lambda file: file.create_dataset(
            "weight", (3,), "f4", external=[("/etc/passwd", 0, 12)]
        ),
        "2^33 packed zeros": lambda file: file.create_dataset(
            "weight", (2**33,), "f4", compression="gzip", chunks=(2**20,)
        ),
        "texts": lambda file: file.__setitem__("weight", "text"),
    }.items():
        yield written("lying header", name, change(edit))
    yield written("nesting", "200 groups", change(nested))
    yield written("nesting", "a group in itself", change(itself), READ_OR_REFUSED)


def onnx_file(content: bytes) -> Iterator[Change]:
    """Iterate over changes of a file of ONNX."""
    yield from _of_any(content, _onnx)
    for name, edit in {
        "2^40 numbers": lambda one: one.dims.append(2**40),
        "a negative length": lambda one: one.dims.append(-1),
        "an unknown type": lambda one: setattr(one, "data_type", 99),
        "numbers in a file": lambda one: setattr(one, "data_location", 1),
    }.items():
        model = onnx.load_model_from_string(content)
        edit(model.graph.initializer[0])
        yield written("lying header", name, model.SerializeToString())
