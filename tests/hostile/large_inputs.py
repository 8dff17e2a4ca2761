"""Writes inputs that unpack to nearly the most that a limit allows.

Each function takes the path of an intact input, or of a folder, and the bytes that the limits
let the new one unpack to, by their own estimate.
"""

import gzip
import io
import json
import struct
import tarfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from safetensors.torch import save_file

from overheard.archive.tensor_files import MAX_LIST_BYTES
from overheard.data.datasets import cifar10
from overheard.data.reading.arrays import ITEM_BYTES
from overheard.data.reading.mnist_files import MAGIC, SIDE
from overheard.data.reading.texts import WORD_BYTES
from overheard.disk.limits import MAX_RATIO, json_memory
from overheard.disk.reading import MAX_TABLES
from overheard.plans.strict_model import MAX_ITEMS
from overheard.recorders.exported_weights import NUMBER_BYTES
from tests.hostile import saved_datasets

Writer = Callable[[Path, int], None]

MARK = "@large@"


def csv_of_numbers(path: Path, size: int) -> None:
    """Write a table of different numbers."""
    path.write_bytes(_csv(size))


def packed_csv_of_numbers(path: Path, size: int) -> None:
    """Write the same table, packed."""
    path.write_bytes(gzip.compress(_csv(size), 1))


def csv_of_words(path: Path, size: int) -> None:
    """Write a table of different texts."""
    # A row becomes 40 tokens of 8 bytes.
    rows = (f"w{number:08d} v{number},{number % 3}\n" for number in range(size // 320))
    path.write_text("note,label\n" + "".join(rows))


def csv_of_long_texts(path: Path, size: int) -> None:
    """Write a table of texts of 1,300 short words each."""
    words = " ".join(f"{number % 100:02}" for number in range(1_300))
    rows = (f"{number:08d} {words},{number % 3}\n" for number in range(size // 3_930))
    path.write_text("note,label\n" + "".join(rows))


def csv_of_emoji(path: Path, size: int) -> None:
    """Write a table of texts with an emoji each, so that each letter takes 4 bytes."""
    # Each text is counted with 4 bytes a letter and 72 beside.
    rows = (f"😀 {number:08d} {'word ' * 18},{number % 3}\n" for number in range(size // 480))
    path.write_text("note,label\n" + "".join(rows), encoding="utf-8")


def csv_of_different_words(path: Path, size: int) -> None:
    """Write a table of texts in which no word is there twice."""
    rows = (
        " ".join(f"{word:x}" for word in range(20 * row, 20 * (row + 1))) + f",{row % 3}\n"
        for row in range(0x10, size // (20 * WORD_BYTES))
    )
    path.write_text("note,label\n" + "".join(rows))


def _csv(size: int) -> bytes:
    # Each number is a text of some 10 letters, counted with 72 bytes beside.
    rows = (
        f"{number / 7:.9g},w{number % 4},{'fm'[number % 2]},c{number % 3}\n"
        for number in range(size // 83)
    )
    return ("age,ward,sex,label\n" + "".join(rows)).encode()


def parquet_of_numbers(path: Path, size: int) -> None:
    """Write a table of different numbers in Parquet."""
    # Each number becomes a text of some 19 letters, counted with 72 bytes beside.
    rows = size // 92
    label, ward = np.array(["a", "b", "c"]), np.array(["x", "y"])
    table = {
        "age": np.random.default_rng(0).random(rows),
        "label": label[np.arange(rows) % 3],
        "ward": ward[np.arange(rows) % 2],
    }
    pq.write_table(pa.table(table), path)


def parquet_of_one_text(path: Path, size: int) -> None:
    """Write a table in Parquet of many rows with one text."""
    rows = size // 150
    note = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), ["x" * 100])
    label = pa.array(np.array(["a", "b", "c"])[np.arange(rows) % 3])
    number = np.random.default_rng(0).random(rows)
    table = {"age": number, "note": note, "label": label, "ward": label}
    pq.write_table(pa.table(table), path, compression="none")


def arrow_of_images(path: Path, size: int) -> None:
    """Write a folder of images with many small ones."""
    # Each row is counted with 512 bytes beside its image, of some 80 bytes, and its label.
    images = saved_datasets.noise(size // 1220 * 2)
    path.write_bytes(saved_datasets.stream(saved_datasets.table(images)))


def arrow_of_empty_batches(path: Path, size: int) -> None:
    """Write many batches without a row, of 50 arrays each."""
    path.write_bytes(saved_datasets.empty_batches(size // (51 * 512 + 2000)))


def npz_of_numbers(path: Path, size: int) -> None:
    """Write arrays of numbers that do not compress."""
    # Each number is counted as 8 bytes, as it is converted.
    rows = size // 64
    numbers = np.random.default_rng(0).random((rows, 8), np.float32)
    np.savez(path, x=numbers, y=np.arange(rows) % 3)


def npz_of_zeros(path: Path, size: int) -> None:
    """Write arrays that hold nearly nothing but zeros, packed as far as is allowed."""
    rows = size // 64
    numbers = np.zeros((rows, 8), np.float32)
    # As much noise as the ratio of unpacked to packed bytes requires.
    noise = 2 * numbers.nbytes // MAX_RATIO // 32
    numbers[:noise] = np.random.default_rng(0).random((noise, 8), np.float32)
    labels = np.random.default_rng(0).integers(0, 3, rows, np.uint8)
    np.savez_compressed(path, x=numbers, y=labels)


def npz_of_images(path: Path, size: int) -> None:
    """Write images of one byte a pixel, which become numbers of 4 bytes."""
    count = size // ITEM_BYTES // 64
    pixels = np.random.default_rng(0).integers(0, 256, (count, 8, 8), np.uint8)
    np.savez(path, x=pixels, y=np.arange(count) % 3)


def npz_of_many_arrays(path: Path, size: int) -> None:
    """Write an archive whose list of arrays is as long as its data may be."""
    _write_many_entries(path, b"", size // 60)


def idx_of_noise(path: Path, size: int) -> None:
    """Write the four files of MNIST, with images that do not compress."""
    folder = path / "data" / "mnist"
    folder.mkdir(parents=True)
    count = size // (ITEM_BYTES * SIDE * SIDE)
    draw = np.random.default_rng(0)
    labels = struct.pack(">2I", MAGIC + 1, count) + bytes(np.arange(count, dtype=np.uint8) % 10)
    for part in ("train", "t10k"):
        pixels = draw.integers(0, 256, count * SIDE * SIDE, np.uint8).tobytes()
        images = struct.pack(">4I", MAGIC + 3, count, SIDE, SIDE) + pixels
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images, 1))
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels, 1))


def cifar_of_noise(path: Path, size: int) -> None:
    """Write CIFAR-10 in one file, with images that do not compress."""
    shape = cifar10.SHAPE
    count = size // (ITEM_BYTES * int(np.prod(shape)))
    draw = np.random.default_rng(0)
    labels = np.arange(count) % 10
    arrays = {}
    for part in ("train", "test"):
        arrays[f"x_{part}"] = draw.integers(0, 256, (count, *shape), np.uint8)
        arrays[f"y_{part}"] = labels
    np.savez(_folder(path) / "cifar10.npz", **arrays)


def cifar_archive(path: Path, _: int) -> None:
    """Write the archive of CIFAR-10 as it is published, whose size is fixed."""
    _write_archive(path, ())


def cifar_archive_of_many_files(path: Path, size: int) -> None:
    """Write an archive of CIFAR-10 with many empty files before those of the images."""
    _write_archive(path, (tarfile.TarInfo(f"{number}") for number in range(size // 512)))


def cifar_archive_of_long_header(path: Path, size: int) -> None:
    """Write an archive of CIFAR-10 in which a file has a header of many entries."""
    member = tarfile.TarInfo("x")
    # More take minutes to write.
    member.pax_headers = {f"{number:x}": "" for number in range(min(size // 20, 10**5))}
    _write_archive(path, (member,))


def _write_archive(path: Path, first: Sequence[tarfile.TarInfo] | Iterator[Any]) -> None:
    draw = np.random.default_rng(0)
    name = _folder(path) / cifar10.ARCHIVE.file_name
    with gzip.open(name, "wb", 1) as packed:
        for member in first:
            packed.write(member.tobuf(tarfile.PAX_FORMAT))
        for batch in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
            images = draw.integers(0, 256, (cifar10.BATCH, cifar10.IMAGE_BYTES), np.uint8)
            images[:, 0] %= 10
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{batch}.bin")
            member.size = images.nbytes
            packed.write(member.tobuf() + images.tobytes() + bytes(-images.nbytes % 512))
        packed.write(bytes(1024))


def _folder(path: Path) -> Path:
    folder = path / "data" / "cifar10"
    folder.mkdir(parents=True)
    return folder


def statements(path: Path, size: int) -> None:
    """Write source code of short statements."""
    path.write_bytes(b"from torch import nn\n" + b"a\n" * (size // 2 - 20))


def toml_list(path: Path, size: int) -> None:
    """Write a long list in TOML, in place of all content."""
    path.write_bytes(b"a = [" + b"1," * (size // 2 - 5) + b"]\n")


def toml_items(key: str, item: str, most: int = 10**7) -> Writer:
    """Return what gives a table of TOML a long list of one item, and at most so many."""

    def write(path: Path, size: int) -> None:
        lines = [
            line for line in path.read_text().splitlines() if not line.startswith(f"{key} =")
        ]
        count = min(most, (size - 10_000) // (len(item) + 1))
        text = f"{key} = [" + f"{item}," * count + "]\n"
        path.write_text(text + "\n".join(lines))

    return write


def toml_keys(path: Path, size: int) -> None:
    """Write many unknown keys before the intact content."""
    count = min(MAX_ITEMS - 1000, (size - 10_000) // 9)
    lines = "".join(f"k{number:x}=1\n" for number in range(count))
    path.write_text(lines + path.read_text())


def toml_tables(path: Path, size: int) -> None:
    """Write many tables after the intact content, up to the most that are read."""
    count = min(MAX_TABLES - 1000, (size - 10_000) // 9)
    lines = "".join(f"[k{number:x}]\n" for number in range(count))
    path.write_text(path.read_text() + lines)


def json_items(
    keys: str, item: str | Callable[[int], str], *, is_table: bool = False
) -> Writer:
    """Return what puts many items at a place of a JSON document, or of its first line.

    Args:
        keys: where, such as "recording.faults"; numbers are places in a list.
        item: the item, or what returns it by its number.
        is_table: whether the items are entries of an object.

    """
    begin, end = "{}" if is_table else "[]"
    each = item if callable(item) else lambda _: item

    def write(path: Path, size: int) -> None:
        content = path.read_text()
        is_list = path.suffix == ".jsonl"
        first, _, rest = content.partition("\n") if is_list else (content, "", "")
        document = place = json.loads(first)
        *outer, last = (int(key) if key.isdecimal() else key for key in keys.split("."))
        for key in outer:
            # Rounds are texts in an object, and places are numbers in a list.
            place = place[str(key) if isinstance(place, dict) else key]
        place[str(last) if isinstance(place, dict) else last] = MARK
        text = json.dumps(document)
        free = size - json_memory(f"{text}{rest}".encode())
        count = free // json_memory(f"{each(0x1234567)},".encode())
        items = ",".join(each(number) for number in range(count))
        text = text.replace(json.dumps(MARK), f"{begin}{items}{end}")
        path.write_text(f"{text}\n{rest}", encoding="utf-8")

    return write


def json_text(key: str) -> Writer:
    """Return what puts a long text of emoji, of which each takes 4 bytes, into a document."""

    def write(path: Path, size: int) -> None:
        document = json.loads(path.read_bytes()) | {key: MARK}
        text = json.dumps(document)
        count = (size - json_memory(text.encode())) // 16
        path.write_text(text.replace(MARK, "😀" * count), encoding="utf-8")

    return write


def many_lines(line: str | None, path: Path, size: int) -> None:
    """Write a line many times after the first message; None = a valid missing reply."""
    first = path.read_text().splitlines()[0]
    if line is None:
        names = {"round": 0, "sender": "client/0", "readers": ["server"]}
        line = json.dumps({**names, "body": {"kind": "missing", "reason": "late"}})
    count = (size - json_memory(first.encode())) // json_memory(f"{line}\n".encode())
    path.write_text(f"{first}\n" + f"{line}\n" * count)


def safetensors_of_noise(path: Path, size: int) -> None:
    """Write tensors of 16 bits a number, for each file of an export."""
    _write_export(path, size // NUMBER_BYTES, torch.float16)


def safetensors_of_doubles(path: Path, size: int) -> None:
    """Write tensors of 64 bits a number, for each file of an export."""
    _write_export(path, size // 8, torch.float64)


def _write_export(path: Path, count: int, dtype: torch.dtype) -> None:
    weights = torch.randn(1, count, generator=torch.Generator().manual_seed(0)).to(dtype)
    home = path.parent.parent
    for file in (*home.rglob("*.safetensors"), *home.rglob("*.npz")):
        tensors = {"weight": weights, "bias": torch.zeros(1, dtype=dtype)}
        if file.suffix == ".npz":
            np.savez(file, **{name: one.numpy() for name, one in tensors.items()})
        else:
            save_file(tensors, file)


def safetensors_of_many(path: Path, size: int) -> None:
    """Write as many empty tensors as the longest header that is read may list."""
    count = min(size, MAX_LIST_BYTES) // 68
    tensors = ",".join(
        f'"{number:07x}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}'
        for number in range(count)
    )
    header = f"{{{tensors}}}".encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)


def npz_of_weights(path: Path, size: int) -> None:
    """Write weights of 16 bits a number that hold nearly nothing but zeros, packed."""
    count = size // NUMBER_BYTES
    _write_export(path, count, torch.float16)
    noise = np.random.default_rng(0).random(3 * count // MAX_RATIO).astype(np.float16)
    weights = np.zeros((1, count), np.float16)
    weights[0, : len(noise)] = noise
    np.savez_compressed(path, weight=weights, bias=np.zeros(1, np.float16))


def npz_of_many_weights(path: Path, size: int) -> None:
    """Write an archive whose list of tensors is as long as its data may be."""
    _write_many_entries(path, b"", size // 60)


def _write_many_entries(path: Path, content: bytes, count: int) -> None:
    """Write a zip archive of so many entries; Python's own writer takes minutes for them."""
    local, listed = io.BytesIO(), io.BytesIO()
    for number in range(count):
        name = f"{number:x}.npy".encode()
        sizes = struct.pack("<3I2H", 0, len(content), len(content), len(name), 0)
        place = local.tell()
        if number < 2:
            local.write(b"PK\3\4" + struct.pack("<5H", 20, 0, 0, 0, 33) + sizes + name)
        listed.write(b"PK\1\2" + struct.pack("<6H", 20, 20, 0, 0, 0, 33) + sizes)
        listed.write(struct.pack("<3H2I", 0, 0, 0, 0, 0 if number else place) + name)
    start, length = local.tell(), listed.tell()
    end = struct.pack("<Q2H2I4Q", 44, 45, 45, 0, 0, count, count, length, start)
    local.write(listed.getvalue() + b"PK\6\6" + end)
    local.write(b"PK\6\7" + struct.pack("<IQI", 0, start + length, 1))
    most = 0xFFFFFFFF
    local.write(b"PK\5\6" + struct.pack("<4H2IH", 0, 0, 0xFFFF, 0xFFFF, most, most, 0))
    path.write_bytes(local.getvalue())


def mpk_of_noise(path: Path, size: int) -> None:
    """Write each file of an experiment of Fed-BioMed with tensors of 16 bits a number."""
    count = size // NUMBER_BYTES
    content = np.random.default_rng(0).random(count).astype(np.float16).tobytes()
    stored = [content, "float16", [count]]
    packed = msgpack.packb({"w": {"__type__": "torch.Tensor", "value": stored}})
    for file in path.parent.rglob("*.mpk"):
        file.write_bytes(packed)


def numbered(text: str) -> Callable[[int], str]:
    """Return what puts the number of an item, in hexadecimal digits, in place of a #."""
    return lambda number: text.replace("#", f"{number:07x}")


EMPTY_LINES = partial(many_lines, "")
SHORT_LINES = partial(many_lines, "1")
MISSING_REPLIES = partial(many_lines, None)
