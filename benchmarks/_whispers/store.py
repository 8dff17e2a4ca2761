"""Readings and errors, stored in one file each, so that nothing is computed twice."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import final

import numpy as np
import torch

from _whispers.estimators import mean_error
from _whispers.setting import Setting
from _whispers.simulate import Readings, simulate
from overheard.archive.atomic import write_bytes, write_text
from overheard.core.seeds import Seed


@final
@dataclass(frozen=True, slots=True)
class Store:
    """A folder of readings and errors.

    Args:
        folder: created if it does not exist.
        data: the data folder; None = the usual places.

    """

    folder: Path
    data: Path | None

    def measure(self, setting: Setting, seed: int, estimators: Iterable[str]) -> None:
        """Simulate a setting, and compute the errors that are missing."""
        known = self.errors(setting, seed)
        missing = [name for name in estimators if name not in known]
        if not missing:
            return
        readings = self._readings(setting, seed)
        for name in missing:
            known[name] = mean_error(setting, readings, name, Seed(seed))
            page = {"setting": repr(setting), "seed": seed, "errors": known}
            write_text(self._path(setting, seed, "json"), json.dumps(page, indent=1))

    def errors(self, setting: Setting, seed: int) -> dict[str, float]:
        """Return the mean L1 of each estimator that was measured."""
        path = self._path(setting, seed, "json")
        if not path.exists():
            return {}
        errors: dict[str, float] = json.loads(path.read_text())["errors"]
        return errors

    def _readings(self, setting: Setting, seed: int) -> Readings:
        path = self._path(setting, seed, "npz")
        if not path.exists():
            readings = simulate(setting, Seed(seed), self.data)
            arrays = {
                field.name: getattr(readings, field.name).numpy() for field in fields(readings)
            }
            buffer = BytesIO()
            np.savez(buffer, **arrays)
            write_bytes(path, buffer.getvalue())
        with np.load(path) as stored:
            return Readings(*(torch.from_numpy(stored[one.name]) for one in fields(Readings)))

    def _path(self, setting: Setting, seed: int, ending: str) -> Path:
        digest = blake2b(f"{setting!r} {seed}".encode(), digest_size=8).hexdigest()
        return self.folder / f"{digest}.{ending}"
