"""`python -m tests.hostile.sizes`: memory and seconds for inputs that are nearly too large.

Each input unpacks to nearly the most that its limit allows, in the form that takes the most
memory beside. The table shows what a command takes more than for the intact input.
"""

import argparse
import gzip
import struct
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from overheard.data.reading.arrays import ITEM_BYTES
from overheard.data.reading.mnist_files import MAGIC, SIDE
from overheard.data.reading.texts import WORD_BYTES
from overheard.disk.limits import ARRAY, SMALL_FILE, SOURCE_FILES, TABLE, VARIABLE, parse_size
from tests.hostile.__main__ import say
from tests.hostile.audit_hook import WatchedCommands
from tests.hostile.cells import LIMIT_S, SPARE_BYTES, Cell, Corpus
from tests.hostile.changes import READ_OR_REFUSED, Change
from tests.hostile.entries import ENTRIES
from tests.hostile.workspace import build

SHARE = 0.95
"""The share of its limit that an input takes."""


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


def npz_of_numbers(path: Path, size: int) -> None:
    """Write arrays of numbers that do not compress."""
    # Each number is counted as 8 bytes, as it is converted.
    rows = size // 64
    numbers = np.random.default_rng(0).random((rows, 8), np.float32)
    np.savez(path, x=numbers, y=np.arange(rows) % 3)


def statements(path: Path, size: int) -> None:
    """Write source code of short statements."""
    path.write_bytes(b"from torch import nn\n" + b"a\n" * (size // 2 - 20))


def toml_list(path: Path, size: int) -> None:
    """Write a long list in TOML."""
    path.write_bytes(b"a = [" + b"1," * (size // 2 - 5) + b"]\n")


SIZES: tuple[tuple[str, int, Callable[[Path, int], None]], ...] = (
    ("data: tables in csv", TABLE, csv_of_numbers),
    ("data: texts in csv", TABLE, csv_of_words),
    ("data: texts in csv", TABLE, csv_of_long_texts),
    ("data: texts in csv", TABLE, csv_of_emoji),
    ("data: texts in csv", TABLE, csv_of_different_words),
    ("data: tables in csv.gz", TABLE, packed_csv_of_numbers),
    ("data: tables in parquet", TABLE, parquet_of_numbers),
    ("data: tables in parquet", TABLE, parquet_of_one_text),
    ("data: arrays in npz", ARRAY, npz_of_numbers),
    ("data: folder of public data sets", ARRAY, idx_of_noise),
    ("app: source code", SOURCE_FILES, statements),
    ("plan", SMALL_FILE, toml_list),
)


def main() -> int:
    """Measure all inputs; return 1 if one takes too much."""
    options = argparse.ArgumentParser(prog="python -m tests.hostile.sizes", description=__doc__)
    options.add_argument("--limit", type=parse_size, default=parse_size("200MB"))
    options.add_argument("--entry", default="", help="a part of the names of entries")
    chosen = options.parse_args()
    environment = MappingProxyType({VARIABLE: str(chosen.limit)})
    failed = 0
    with tempfile.TemporaryDirectory() as folder, WatchedCommands() as commands:
        corpus = Corpus(build(Path(folder) / "workspace"), Path(folder) / "process", commands)
        say(f"{'entry and input':<50}{'MB':>8}{'most MB':>9}{'s':>7}  how it ended")
        for row, part, write in SIZES:
            if chosen.entry in row:
                failed += _measure(corpus, row, write, chosen.limit // part, environment)
    return int(failed > 0)


def _measure(
    corpus: Corpus,
    row: str,
    write: Callable[[Path, int], None],
    limit: int,
    environment: Mapping[str, str],
) -> bool:
    entry = next(one for one in ENTRIES if one.row == row)
    name = write.__name__.replace("_", " ")
    change = Change(
        "large",
        name,
        lambda path: write(path, int(SHARE * limit)),
        READ_OR_REFUSED,
        environment,
    )
    result = corpus.run(Cell(entry, change, entry.commands[0]))
    taken, most = result.more_bytes >> 20, (4 * limit + SPARE_BYTES) >> 20
    said = " ".join((result.end, *result.problems, result.said))
    say(f"{row + ': ' + name:<50}{taken:>8}{most:>9}{result.seconds:>7.1f}  {said[:200]}")
    return taken > most or result.seconds > LIMIT_S


if __name__ == "__main__":
    sys.exit(main())
