"""`python -m tests.hostile.sizes`: memory and seconds for inputs that are nearly too large.

Each input unpacks to nearly the most that its limit allows, in the form that takes the most
memory beside. The table shows what a command takes more than for the intact input.
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from overheard.disk.limits import (
    ARRAY,
    FINDINGS,
    JSON,
    SMALL_FILE,
    SOURCE_FILES,
    TABLE,
    VARIABLE,
    parse_size,
)
from overheard.plans.strict_model import MAX_ITEMS
from tests.hostile import large_inputs as write
from tests.hostile.__main__ import say
from tests.hostile.audit_hook import WatchedCommands
from tests.hostile.cells import LIMIT_S, SPARE_BYTES, Cell, Corpus
from tests.hostile.changes import READ_OR_REFUSED, Change
from tests.hostile.entries import ENTRIES, plan_check
from tests.hostile.large_inputs import Writer, json_items, json_text, numbered, toml_items
from tests.hostile.workspace import build

SHARE = 0.95
"""The share of its limit that an input takes."""


@dataclass(frozen=True)
class Large:
    """A form of a large input.

    Args:
        row: the entry.
        part: which limit counts, see `overheard.disk.limits`.
        name: what is in it.
        write: writes it.
        commands: what reads it; () = the commands of the entry.

    """

    row: str
    part: int
    name: str
    write: Writer
    commands: tuple[tuple[str, ...], ...] = ()


TRUTH, MANIFEST = "recording: truth.json", "recording: manifest.json"
LINES, FOUND = "recording: message lines", "findings.json"
ARROW = "data: folder of datasets: rows in arrow"
CSV, TEXTS = "data: tables in csv", "data: texts in csv"
IMAGES, ARRAYS = "data: folder of public data sets", "data: arrays in npz"
ABOUT, SAFETENSORS = "export: about.toml", "export: weights in safetensors"
NPZ, BREAKPOINT = "export: weights in npz", "export: breakpoints of Fed-BioMed"
FACTS, DIGESTS = "recording: facts for a plan", "evidence: digests.json"

RULES = MAX_ITEMS - 1000
"""Items of a list that a plan or a policy may just have."""

CIFAR = (plan_check("cifar.toml"),)

TEXT = numbered('"#":""')
UNKNOWN = numbered('"#":1')
CLIENT = numbered('"client/#"')

SIZES: tuple[Large, ...] = (
    Large(CSV, TABLE, "numbers", write.csv_of_numbers),
    Large(TEXTS, TABLE, "words", write.csv_of_words),
    Large(TEXTS, TABLE, "long texts", write.csv_of_long_texts),
    Large(TEXTS, TABLE, "emoji", write.csv_of_emoji),
    Large(TEXTS, TABLE, "different words", write.csv_of_different_words),
    Large("data: tables in csv.gz", TABLE, "numbers", write.packed_csv_of_numbers),
    Large("data: tables in parquet", TABLE, "numbers", write.parquet_of_numbers),
    Large("data: tables in parquet", TABLE, "one text", write.parquet_of_one_text),
    Large(ARROW, TABLE, "images", write.arrow_of_images),
    Large(ARROW, TABLE, "empty batches", write.arrow_of_empty_batches),
    Large(ARRAYS, ARRAY, "numbers", write.npz_of_numbers),
    Large(ARRAYS, ARRAY, "zeros, packed", write.npz_of_zeros),
    Large(ARRAYS, ARRAY, "images", write.npz_of_images),
    Large(ARRAYS, ARRAY, "many arrays", write.npz_of_many_arrays),
    Large(IMAGES, ARRAY, "MNIST", write.idx_of_noise),
    Large(IMAGES, ARRAY, "CIFAR-10 in npz", write.cifar_of_noise, CIFAR),
    Large(IMAGES, ARRAY, "CIFAR-10 as published", write.cifar_archive, CIFAR),
    Large(IMAGES, ARRAY, "CIFAR-10, many files", write.cifar_archive_of_many_files, CIFAR),
    Large(IMAGES, ARRAY, "CIFAR-10, long header", write.cifar_archive_of_long_header, CIFAR),
    Large(TRUTH, JSON, "wrong items", json_items("accuracy", "1")),
    Large(TRUTH, JSON, "unknown keys", json_items("x", UNKNOWN, is_table=True)),
    Large(TRUTH, JSON, "empty lists", json_items("x", "[]")),
    Large(TRUTH, JSON, "one text", json_text("x")),
    Large(TRUTH, JSON, "one long count", json_items("counts.0.labels", "1")),
    Large(
        TRUTH,
        JSON,
        "accuracies",
        json_items("accuracy", lambda number: f'{{"round":{number},"accuracy":0.5}}'),
    ),
    Large(
        TRUTH,
        JSON,
        "counts",
        json_items(
            "counts",
            lambda number: f'{{"round":{number % 2},"party":"client/{number}","labels":[1,1]}}',
        ),
    ),
    Large(MANIFEST, JSON, "wrong items", json_items("parties", "1")),
    Large(MANIFEST, JSON, "unknown keys", json_items("task", UNKNOWN, is_table=True)),
    Large(MANIFEST, JSON, "empty lists", json_items("parties", "[]")),
    Large(MANIFEST, JSON, "one text", json_text("model")),
    Large(MANIFEST, JSON, "parties", json_items("parties", CLIENT)),
    Large(FACTS, JSON, "parties", json_items("parties", CLIENT)),
    Large(FACTS, JSON, "classes", json_items("task.class_names", CLIENT)),
    Large(LINES, JSON, "empty lines", write.EMPTY_LINES),
    Large(LINES, JSON, "wrong lines", write.SHORT_LINES),
    Large(LINES, JSON, "missing replies", write.MISSING_REPLIES),
    Large(LINES, JSON, "wrong items", json_items("readers", "1")),
    Large(LINES, JSON, "readers", json_items("readers", CLIENT)),
    Large(LINES, JSON, "settings", json_items("body.config", TEXT, is_table=True)),
    Large(LINES, JSON, "wrong settings", json_items("body.config", UNKNOWN, is_table=True)),
    Large(FOUND, FINDINGS, "wrong items", json_items("refusals", "1")),
    Large(FOUND, FINDINGS, "empty lists", json_items("refusals", "[]")),
    Large(FOUND, FINDINGS, "wrong keys", json_items("arms.0.accuracy", UNKNOWN, is_table=True)),
    Large(FOUND, FINDINGS, "one text", json_text("plan")),
    Large(FOUND, FINDINGS, "empty findings", json_items("findings", '{"scores":0}')),
    Large(FOUND, FINDINGS, "versions", json_items("versions", TEXT, is_table=True)),
    Large(FOUND, FINDINGS, "unused", json_items("x", numbered('"#"'))),
    Large(
        FOUND, FINDINGS, "cells", json_items("findings", numbered('{"scores":[],"target":"#"}'))
    ),
    Large(BREAKPOINT, JSON, "empty lists", json_items("aggregator.x", "[]")),
    Large(BREAKPOINT, JSON, "settings", json_items("training_args", UNKNOWN, is_table=True)),
    Large(
        BREAKPOINT,
        JSON,
        "replies",
        json_items("training_replies.0", numbered('"#":{"success":false}'), is_table=True),
    ),
    Large(
        BREAKPOINT,
        JSON,
        "wrong replies",
        json_items("training_replies.0", UNKNOWN, is_table=True),
    ),
    Large("export: weights of Fed-BioMed", ARRAY, "16 bits", write.mpk_of_noise),
    Large(SAFETENSORS, ARRAY, "16 bits", write.safetensors_of_noise),
    Large(SAFETENSORS, ARRAY, "64 bits", write.safetensors_of_doubles),
    Large(SAFETENSORS, ARRAY, "many tensors", write.safetensors_of_many),
    Large(NPZ, ARRAY, "16 bits, zeros, packed", write.npz_of_weights),
    Large(NPZ, ARRAY, "many tensors", write.npz_of_many_weights),
    Large(ABOUT, SMALL_FILE, "clients", toml_items("clients", '""')),
    Large(ABOUT, SMALL_FILE, "wrong clients", toml_items("clients", "1")),
    Large(ABOUT, SMALL_FILE, "unknown keys", write.toml_keys),
    Large(ABOUT, SMALL_FILE, "tables", write.toml_tables),
    Large("app: source code", SOURCE_FILES, "statements", write.statements),
    Large("plan", SMALL_FILE, "one list", write.toml_list),
    Large("plan", SMALL_FILE, "wrong seeds", toml_items("seeds", '""', RULES)),
    Large("plan", SMALL_FILE, "seeds", toml_items("seeds", "1", RULES)),
    Large("plan", SMALL_FILE, "unknown keys", write.toml_keys),
    Large("policy", SMALL_FILE, "wrong rules", toml_items("epsilon", "1", RULES)),
    Large(DIGESTS, SMALL_FILE, "wrong digests", json_items("files", "1")),
)


def main() -> int:
    """Measure all inputs; return 1 if one takes too much."""
    options = argparse.ArgumentParser(prog="python -m tests.hostile.sizes", description=__doc__)
    options.add_argument("--limit", type=parse_size, default=parse_size("200MB"))
    options.add_argument("--entry", default="", help="a part of the names of entries")
    chosen = options.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder, WatchedCommands() as commands:
        corpus = Corpus(build(Path(folder) / "workspace"), Path(folder) / "process", commands)
        say(f"{'entry, input and command':<66}{'MB':>8}{'most MB':>9}{'s':>7}  how it ended")
        for large in SIZES:
            if chosen.entry in f"{large.row}: {large.name}":
                failed += _measure(corpus, large, chosen.limit)
    return int(failed > 0)


def _measure(corpus: Corpus, large: Large, limit: int) -> bool:
    """Measure each command that reads an input, and print a line; return whether one fails."""
    entry = next(one for one in ENTRIES if one.row == large.row)
    size = limit // large.part
    change = Change(
        "large",
        large.name,
        lambda path: large.write(path, int(SHARE * size)),
        READ_OR_REFUSED,
        MappingProxyType({VARIABLE: str(limit)}),
        size,
    )
    is_bad = False
    for command in large.commands or entry.commands:
        result = corpus.run(Cell(entry, change, command))
        taken, most = result.more_bytes >> 20, (4 * size + SPARE_BYTES) >> 20
        said = " ".join((result.end, *result.problems, result.said))
        name = f"{large.row}: {large.name} ({command[0]})"
        say(f"{name:<66}{taken:>8}{most:>9}{result.seconds:>7.1f}  {said[:200]}")
        is_bad |= taken > most or result.seconds > LIMIT_S
    return is_bad


if __name__ == "__main__":
    sys.exit(main())
