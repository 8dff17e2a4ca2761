"""Fixtures for tests without network, and a writer of IDX files."""

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pooch
import pytest


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every download fail at once, as without a network."""

    def unreachable(*_: object, **__: object) -> str:
        raise OSError("no network")

    monkeypatch.setattr(pooch, "retrieve", unreachable)


@pytest.fixture
def write_idx() -> Callable[[Path, np.ndarray], Path]:
    """Return a function that writes bytes as a gzipped IDX file."""

    def write(path: Path, array: np.ndarray) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        head = struct.pack(f">{1 + array.ndim}I", 0x0800 + array.ndim, *array.shape)
        path.write_bytes(gzip.compress(head + array.astype(np.uint8).tobytes()))
        return path

    return write
