"""Hostile folders of images as Hugging Face's `datasets` saves them."""

import io
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from PIL import Image

from tests.hostile.changes import JSON, NAMES, READ_OR_REFUSED, Change, cut, documents, written

DATA = "data-00000-of-00001.arrow"

IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])

ROWS = 120


def save_dataset(folder: Path) -> None:
    """Write a folder of images with two classes, and a file that `map` left in it."""
    folder.mkdir()
    (folder / DATA).write_bytes(stream(table(noise(ROWS))))
    (folder / "cache-0123456789abcdef.arrow").write_bytes(b"no data of the dataset")
    state = {
        "_data_files": [{"filename": DATA}],
        "_fingerprint": "0123456789abcdef",
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
    features = {
        "photo": {"_type": "Image"},
        "label": {"_type": "ClassLabel", "names": ["cat", "dog"]},
    }
    (folder / "state.json").write_text(json.dumps(state), encoding="utf-8")
    info = {"citation": "", "features": features}
    (folder / "dataset_info.json").write_text(json.dumps(info), encoding="utf-8")


def noise(count: int) -> list[bytes]:
    """Return so many images of 3 x 4 pixels."""
    draw = np.random.default_rng(0)
    return [_png(draw.integers(0, 256, (3, 4), np.uint8)) for _ in range(count)]


def table(
    images: list[bytes | None], labels: pa.Array | None = None, path: str | None = None
) -> pa.Table:
    """Return a table as a folder of images has it; an image without bytes lies at the path."""
    stored = [{"bytes": one, "path": None if one else path} for one in images]
    labels = pa.array([0, 1] * (len(images) // 2)) if labels is None else labels
    return pa.table({"photo": pa.array(stored, IMAGE), "label": labels})


def stream(saved: pa.Table) -> bytes:
    """Return a table as the bytes of a file."""
    page = io.BytesIO()
    with pa.ipc.new_stream(page, saved.schema) as file:
        file.write_table(saved)
    return page.getvalue()


def _png(pixels: np.ndarray) -> bytes:
    page = io.BytesIO()
    Image.fromarray(pixels).save(page, "PNG")
    return page.getvalue()


def _large_png(side: int) -> bytes:
    """Return a grey image of zeros, packed a thousand times."""
    parts = (
        (b"IHDR", struct.pack(">2I5B", side, side, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(bytes((side + 1) * side), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


def state(content: bytes) -> Iterator[Change]:
    """Iterate over changes of `state.json`."""
    yield from documents(content, JSON)
    for kind, name, files in (
        ("path parts", "a file outside", ["../outside/victim"]),
        ("path parts", "a file outside that is Arrow", ["../elsewhere.arrow"]),
        ("path parts", "an absolute path", ["/etc/passwd", "/etc/x.arrow"]),
        ("path parts", "the folder itself", ["."]),
        ("contradiction", "a file that is not there", [DATA, "other.arrow"]),
        ("contradiction", "a file of JSON", ["state.json"]),
        ("stale data", "a file that map left", [DATA, "cache-0123456789abcdef.arrow"]),
        ("duplicate", "a file twice", [DATA, DATA]),
        ("escapes", "in a name", ["\x1b]0;x\x07.arrow"]),
        ("many items", "100,000 files", [f"{number}.arrow" for number in range(100_000)]),
        ("missing", "no file", []),
    ):
        new = {"_data_files": [{"filename": one} for one in files]}
        yield written(kind, name, json.dumps(new).encode())


def arrow_file(content: bytes) -> Iterator[Change]:
    """Iterate over changes of the file with the rows of a folder."""
    intact = pa.ipc.open_stream(content).read_all()
    images = [one["bytes"] for one in intact.column("photo").to_pylist()]
    yield from cut(content)
    yield written("wrong type", "text", b"text")
    yield written("null", "999 of them", b"\0" * 999)
    for kind, texts in NAMES.items():
        for text in texts:
            if kind == "surrogate":
                continue
            labels = pa.array([text, *["cat"] * (ROWS - 1)])
            new = {
                "a label": table(images, labels),
                "a column": intact.append_column(text, labels),
                "the path of an image": table([None, *images[1:]], path=text),
                "an extension type": _with_extension(intact, text),
            }
            for name, one in new.items():
                yield written(kind, f"{name} {text[:20]!a}", stream(one), READ_OR_REFUSED)
    # Older versions of pyarrow unpickled the metadata of this type.
    pickled = _with_extension(intact, "arrow.py_extension_type")
    yield written("import", "an extension type of pickle", stream(pickled), READ_OR_REFUSED)
    for kind, name, make in TABLES:
        yield Change(kind, name, partial(_write, make, images), unpacked=2**28)
    for offset in range(0, len(content), len(content) // 40):
        lying = content[:offset] + b"\xff" * 7 + b"\x7f" + content[offset + 8 :]
        yield written("lying header", f"a number at {offset}", lying, READ_OR_REFUSED)


def _write(make: Callable[[list[bytes]], bytes], images: list[bytes], path: Path) -> None:
    path.write_bytes(make(images))


def _with_extension(saved: pa.Table, name: str) -> pa.Table:
    """Return a table whose labels state an extension type, with a program of pickle."""
    stated = {
        "ARROW:extension:name": name,
        "ARROW:extension:metadata": b"cos\nabort\n(tR.",
    }
    field = saved.schema.field("label").with_metadata(stated)
    return saved.cast(saved.schema.set(1, field))


def _views(images: list[bytes]) -> bytes:
    """Return a file whose labels are 20,000 views of one text of 10 MB."""
    text, count = b"x" * 10_000_000, 20_000
    views = np.zeros(count, [("length", "<i4"), ("start", "S4"), ("place", "<i4", (2,))])
    views["length"], views["start"] = len(text), text[:4]
    buffers = [None, pa.py_buffer(views.tobytes()), pa.py_buffer(text)]
    labels = pa.Array.from_buffers(pa.string_view(), count, buffers)
    return stream(table([images[0]] * count, labels))


def _runs(images: list[bytes]) -> bytes:
    ends, text = pa.array([ROWS], pa.int32()), pa.array(["x" * 10_000_000])
    return stream(table(images, pa.RunEndEncodedArray.from_arrays(ends, text)))


def _nulls(_: list[bytes]) -> bytes:
    return stream(pa.table({"photo": pa.nulls(10**9), "label": pa.nulls(10**9)}))


def empty_batches(count: int) -> bytes:
    """Return so many batches of 50 arrays without a row."""
    page = io.BytesIO()
    names = [f"c{number}" for number in range(50)]
    batch = pa.record_batch([pa.array([], pa.null())] * len(names), names=names)
    with pa.ipc.new_stream(page, batch.schema) as file:
        for _ in range(count):
            file.write_batch(batch)
    return page.getvalue()


def _wide(images: list[bytes]) -> bytes:
    saved = table(images)
    names = [*saved.column_names, *(f"c{number}" for number in range(300_000))]
    return stream(
        pa.Table.from_arrays([*saved.columns, *[pa.nulls(ROWS)] * 300_000], names=names)
    )


def _nested(_: list[bytes]) -> bytes:
    kind: pa.DataType = pa.int8()
    for _ in range(60):
        kind = pa.list_(kind)
    return stream(pa.table({"photo": pa.nulls(ROWS, kind), "label": [0, 1] * (ROWS // 2)}))


def _packed(images: list[bytes]) -> bytes:
    page, saved = io.BytesIO(), table(images)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(page, saved.schema, options=options) as file:
        file.write_table(saved)
    return page.getvalue()


def _with_image(image: bytes | None, images: list[bytes]) -> bytes:
    return stream(table([image, *images[1:]], path="/etc/passwd"))


def _with_labels(labels: pa.Array, images: list[bytes]) -> bytes:
    return stream(table(images, labels))


TABLES: tuple[tuple[str, str, Callable[[list[bytes]], bytes]], ...] = (
    ("unpack ratio", "20,000 views of one text", _views),
    ("unpack ratio", "a run of one text", _runs),
    ("unpack ratio", "10^9 rows without a byte", _nulls),
    ("unpack ratio", "packed batches", _packed),
    ("unpack ratio", "100 million pixels", partial(_with_image, _large_png(10_000))),
    ("many items", "3 million empty arrays", lambda _: empty_batches(60_000)),
    ("many names", "300,000 columns", _wide),
    ("nesting", "60 lists", _nested),
    ("path parts", "an image at a path outside", partial(_with_image, None)),
    ("truncated", "half an image", lambda images: _with_image(images[0][:40], images)),
    ("out of range", "NaN", partial(_with_labels, pa.array([float("nan")] + [1.0] * 119))),
    ("out of range", "infinity", partial(_with_labels, pa.array([float("inf")] + [1.0] * 119))),
    ("out of range", "a label below 0", partial(_with_labels, pa.array([-1, 1] * 60))),
    ("out of range", "a label without a name", partial(_with_labels, pa.array([2, 1] * 60))),
    ("wrong type", "lists of labels", partial(_with_labels, pa.array([[0], [1]] * 60))),
)
"""Tables that are refused."""
