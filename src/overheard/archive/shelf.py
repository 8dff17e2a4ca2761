"""Keeps what took long to compute in a folder, one file a key."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from overheard.archive.atomic import write_bytes
from overheard.core.errors import OutputError
from overheard.core.means import Shelf

KEY = re.compile(r"[0-9a-f]{8,128}")
"""A hexadecimal digest of all that decides the tensors: safe as the name of a file."""

MARK = "kept under"
"""The entry of a file's header that repeats its key, so that no foreign file passes for it."""


@final
@dataclass(frozen=True, slots=True)
class FolderShelf(Shelf):
    """Keeps named tensors as safetensors files, each written whole or not at all.

    Args:
        folder: made when something is saved.

    """

    folder: Path

    def load(self, key: str) -> Mapping[str, Tensor] | None:
        """What was saved under this key, or None.

        Raises:
            OutputError: if its file is damaged, or another's.
            ValueError: if the key is no digest.

        """
        path = self._path(key)
        if not path.exists():
            return None
        try:
            with safe_open(path, framework="pt") as file:
                mark = (file.metadata() or {}).get(MARK)
                kept = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise _spoilt(path, str(error)) from error
        if mark != key:
            raise _spoilt(path, "the file of something else")
        return kept

    def save(self, key: str, tensors: Mapping[str, Tensor]) -> None:
        """Keep these tensors.

        Raises:
            OutputError: if the disk or the permissions do not allow it.
            ValueError: if the key is no digest.

        """
        # Cloned, since safetensors takes no tensors that share their memory.
        plain = {
            name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
            for name, tensor in tensors.items()
        }
        path = self._path(key)
        try:
            write_bytes(path, save(plain, {MARK: key}))
        except OutputError:
            # An audit beside this one, on the same folder, was faster with the very same.
            if not path.exists():
                raise

    def _path(self, key: str) -> Path:
        if not KEY.fullmatch(key):
            raise ValueError(f"a key is a hexadecimal digest of 8 to 128 digits, got {key!r}")
        return self.folder / f"{key}.safetensors"


def _spoilt(path: Path, why: str) -> OutputError:
    return OutputError(
        f"{path}: not what was kept there ({why}): delete the file, and it is computed anew"
    )
