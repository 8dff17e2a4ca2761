"""A tensor cache in a folder, with one file per key."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import final

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from overheard.archive.self_digest import check_digest, encode_with_digest
from overheard.core.compute_settings import TensorCache
from overheard.core.errors import OutputError
from overheard.disk.digests import usable_codes
from overheard.disk.writing import write_bytes

KEY_PATTERN = re.compile(r"[0-9a-f]{8,128}")
"""A hexadecimal digest of everything that determines the tensors; safe as a file name."""

KEY_METADATA = "kept under"
"""The metadata entry of a file that repeats its key, to detect files of another key. Its JSON
states the digest of the file too, see `self_digest`."""


@final
@dataclass(frozen=True, slots=True)
class FolderTensorCache(TensorCache):
    """Caches named tensors as safetensors files, each written atomically.

    Args:
        folder: created on the first save.
        inside: the output folder that it is in; None = they are one.

    """

    folder: Path
    inside: Path | None = None

    def load(self, key: str) -> Mapping[str, Tensor] | None:
        """Return the tensors saved under this key, or None.

        A file that states no digest, as an older Overheard wrote, counts as none.

        Raises:
            OutputError: if its file is damaged, or has another digest or key.
            ValueError: if the key is no digest.

        """
        path = self._path(key)
        if not path.exists():
            return None
        try:
            has_digest = check_digest(path)
            with safe_open(path, framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise _damaged_file(path, str(error)) from error
        if not has_digest:
            return None
        if _stated_key(metadata) != key:
            raise _damaged_file(path, "it has another key")
        return tensors

    def save(self, key: str, tensors: Mapping[str, Tensor]) -> None:
        """Save these tensors.

        Raises:
            OutputError: if the disk or the permissions do not allow it.
            ValueError: if the key is no digest.

        """
        # Cloned, since safetensors rejects tensors that share memory.
        copies = {
            name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
            for name, tensor in tensors.items()
        }
        path = self._path(key)
        try:
            write_bytes(
                path,
                encode_with_digest(copies, KEY_METADATA, {"key": key}),
                inside=self.inside or self.folder,
            )
        except OutputError:
            # Another audit with the same cache folder may have saved the same tensors first.
            if not path.exists():
                raise

    def _path(self, key: str) -> Path:
        if not KEY_PATTERN.fullmatch(key):
            raise ValueError(f"a key must have 8 to 128 hexadecimal digits, got {key!r}")
        return self.folder / f"{key}.safetensors"


@final
@dataclass(frozen=True, slots=True)
class CodeTensorCache(TensorCache):
    """A part of a cache for the tensors that some code has computed.

    Args:
        cache: the whole cache.
        code: the digest of the code.

    """

    cache: TensorCache
    code: str

    def load(self, key: str) -> Mapping[str, Tensor] | None:
        """Return the tensors that this code saved under this key, or None."""
        found = (self.cache.load(_code_key(one, key)) for one in usable_codes(self.code))
        return next((one for one in found if one is not None), None)

    def save(self, key: str, tensors: Mapping[str, Tensor]) -> None:
        """Save these tensors as computed by this code."""
        self.cache.save(_code_key(self.code, key), tensors)


def _code_key(code: str, key: str) -> str:
    return blake2b(f"{code} {key}".encode(), digest_size=20).hexdigest()


def _stated_key(metadata: Mapping[str, str]) -> str:
    """Return the key that a file repeats; "" = none."""
    try:
        return str(json.loads(metadata[KEY_METADATA])["key"])
    except (ValueError, LookupError, TypeError):
        return ""


def _damaged_file(path: Path, why: str) -> OutputError:
    return OutputError(f"{path} is damaged ({why}): delete the file to compute it again")
