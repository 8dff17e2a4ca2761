"""Damaged and malicious folders to import, derived from an intact one."""

import io
import json
import random
import shutil
import struct
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save

from overheard.archive.reader import verify_transcript
from overheard.recorders.folder_import import import_recording
from tests.archive.hostile import (
    CONTROL,
    MARKUP,
    VALUES,
    CaseResults,
    Files,
    contents,
    files_in,
    header,
    overview_of,
    rename_key,
    replace_value,
    value_paths,
    write_files,
)

GLOBAL, FIRST, SECOND, LAST = (
    "round-0000/global.safetensors", "round-0000/client-0.npz", "round-0000/b.safetensors",
    "round-0001/global.npz",
)  # fmt: skip
ABOUT = "about.json"

TRANSCRIPT_READERS = (verify_transcript, overview_of)


def exported(folder: Path) -> None:
    """Write a run as another framework may have saved it."""
    tensors = {"weight": torch.tensor([[1.0, 2.0]]), "bias": torch.tensor([0.5])}
    for name in (GLOBAL, FIRST, SECOND, LAST):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".npz":
            np.savez(path, **{key: value.numpy() for key, value in tensors.items()})
        else:
            path.write_bytes(save(tensors))
    about = {
        "framework": "mine 1.0", "model": "linear", "class_names": ["no", "yes"],
        "input_shape": [2], "rounds": 1, "participation": 1.0,
        "recipe": {"rate": 0.1, "epochs": 1, "batch": 4},
        "defenses": [
            {"name": "n", "settings": "N()", "enforced_at": "client", "switched_off_by": "it"}
        ],
        "tensors": ["weight", "bias"], "clients": ["0", "b", "c"],
        "asked": [{"round": 0, "clients": ["0", "b", "c"]}], "examples": {"0": 5, "b": 7},
        "answers": [
            {"round": 0, "client": "b", "examples": 8, "metrics": {"loss": 0.5}},
            {"round": 0, "client": "c", "missing": "late"},
        ],
    }  # fmt: skip
    (folder / ABOUT).write_text(json.dumps(about))


def array(head: bytes, numbers: bytes = b"\0" * 8, version: bytes = b"\x01\x00") -> bytes:
    """Return an array as in an `.npz`, with any header."""
    length = struct.pack("<H" if version == b"\x01\x00" else "<I", len(head))
    return b"\x93NUMPY" + version + length + head + numbers


def zipped(entries: Mapping[str, bytes]) -> bytes:
    page = io.BytesIO()
    with zipfile.ZipFile(page, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return page.getvalue()


def lying(content: bytes, claim: int) -> bytes:
    """Return the zip with this claimed unpacked size of every entry."""
    damaged = bytearray(content)
    for mark, place in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        start = damaged.find(mark)
        while start >= 0:
            damaged[start + place : start + place + 4] = struct.pack("<I", claim)
            start = damaged.find(mark, start + 4)
    return bytes(damaged)


def npz_files() -> Iterator[bytes]:
    heads = [
        f"{{'descr': '{kind}', 'fortran_order': {order}, 'shape': {shape}, }}".encode()
        for kind in (
            "<f4",
            ">f8",
            "<f2",
            "<i8",
            "|O",
            "|V2",
            "<U9",
            "<c8",
            "<M8[s]",
            "<f3",
            "x",
        )
        for order in ("False", "True")
        for shape in ("(2,)", "()", "(0,)", "(-1,)", "(4294967296, 4294967296)", "(2")
    ]
    heads += [b"", b"{}", b"[" * 9000, b"__import__('os').system('touch /tmp/owned')", b"\xff"]
    for head in heads:
        yield zipped({"weight.npy": array(head), "bias.npy": array(head)})
    yield zipped({"weight.npy": array(heads[0], version=b"\x02\x00")})
    yield zipped({"weight.npy": b"\x93NUMPY\x02\x00\xff\xff\xff\xff{"})
    yield zipped({"weight.npy": b"\x93NUMPY\x03\x00\x00\x00"})
    for name in ("../x.npy", "/x.npy", f"{CONTROL[:-1]}.npy", "x" * 9000 + ".npy", "x", ".npy"):
        yield zipped({name: array(heads[0])})
    # Claims to have three gibibytes.
    big = b"{'descr': '<f4', 'fortran_order': False, 'shape': (805306368,), }"
    claim = 10 + len(big) + 4 * 805306368
    yield lying(zipped({"weight.npy": array(big)}), claim)
    # A real zip bomb: 300 megabytes of zeros in 300 kilobytes.
    page = io.BytesIO()
    np.savez_compressed(page, weight=np.zeros(75_000_000, np.float32))
    yield page.getvalue()


def other_about(files: Files, rng: random.Random) -> Iterator[Files]:
    about = json.loads(files[ABOUT])
    for path in value_paths(about):
        for value in rng.sample(VALUES, 4):
            yield files | {ABOUT: replace_value(about, path, value)}
        if isinstance(path[-1], str):
            name = rng.choice((CONTROL, MARKUP, "", "../x"))
            yield files | {ABOUT: rename_key(about, path, name)}


def other_bytes(files: Files, rng: random.Random) -> Iterator[Files]:
    for name, content in files.items():
        for place in {0, 1, len(content) - 1, *rng.sample(range(len(content)), 12)}:
            yield files | {name: content[:place]}
            damaged = bytearray(content)
            damaged[place] ^= 1 << rng.randrange(8)
            yield files | {name: bytes(damaged)}
        yield files | {name: rng.randbytes(99)}
        yield {other: held for other, held in files.items() if other != name}


def other_tensors(files: Files, rng: random.Random) -> Iterator[Files]:
    for content in npz_files():
        yield {name: held for name, held in files.items() if name != ABOUT} | {FIRST: content}
        yield {LAST.replace("1", "0"): content}
    right = {"weight": torch.tensor([[1.0, 2.0]]), "bias": torch.tensor([0.5])}
    for value in (float("nan"), float("inf"), 3e38, -3e38):
        yield files | {SECOND: save(right | {"bias": torch.tensor([value])})}
        yield files | {GLOBAL: save(right | {"bias": torch.tensor([value])})}
    for dtype in ("F32", "F4", "F8_E4M3", "XX"):
        for shape, length in (([2], 8), ([2**60], 2**62), ([-1], 8), ([], 4)):
            yield files | {SECOND: header(dtype, shape, length)}
            yield {GLOBAL: header(dtype, shape, length)}
    for size in (0, 2**31, 2**60, 2**63, 2**64 - 1):
        yield files | {GLOBAL: struct.pack("<Q", size) + b"{}" * 20}


def other_names(files: Files, rng: random.Random) -> Iterator[Files]:
    for name in (
        CONTROL[:-1], MARKUP.replace("/", "|"), "..x", "-", "ä", "server", "client-0", "a b",
        "{0}", "%s", "x" * 120, "client-", "shadow", "GLOBAL", "~", "$(touch owned)",
    ):  # fmt: skip
        yield files | {f"round-0000/{name}.safetensors": files[SECOND]}
        yield files | {f"{name}/global.safetensors": files[GLOBAL]}
        yield files | {name: b"x"}
    for suffix in (".pt", ".pkl", ".bin", ".txt", "", ".NPZ"):
        # A pickle that would run a program.
        yield files | {f"round-0000/c{suffix}": b"cos\nsystem\n(S'touch owned'\ntR."}
    for number in ("2", "9", "999999999", "0", "-1", "1e3"):
        yield files | {f"round-{number}/global.npz": files[LAST]}


def other_exports(files: Files, rng: random.Random) -> Iterator[Files]:
    for change in (other_about, other_bytes, other_tensors, other_names):
        yield from change(files, rng)


def imports(home: Path, _: Files) -> CaseResults:
    """Run all changes of a folder to import."""
    results, rng = CaseResults(), random.Random(21)
    folder, out = home / "exported", home / "out"
    exported(folder)
    files = contents(folder)
    results.expect(
        not results.run_case("whole", folder, [partial(importing, out=out)]), "not whole"
    )
    results.expect(
        not results.run_case("whole, as imported", out, TRANSCRIPT_READERS), "not read again"
    )
    for number, changed in enumerate(other_exports(files, rng)):
        for path in (folder, out):
            shutil.rmtree(path, ignore_errors=True)
        write_files(folder, changed)
        case = f"import {number}"
        if not results.run_case(case, folder, [partial(importing, out=out)]):
            ends = [results.read_case(case, out, read) for read in TRANSCRIPT_READERS]
            results.expect(not any(ends), f"{case}: what was imported cannot be read: {ends!a}")
        left = files_in(home)
        results.expect(
            all(name.startswith(("exported/", "out/transcript/")) for name in left),
            f"{case}: {left} are there",
        )
        results.expect(
            {name for name in left if name.startswith("exported/")}
            == {f"exported/{name}" for name in changed},
            f"{case}: the exported folder was changed",
        )
    return results


def importing(folder: Path, out: Path) -> None:
    import_recording(folder, out)
