"""Files of tensors that state their own SHA-256.

The metadata of such a safetensors file are one entry: JSON that begins with the SHA-256 of all
bytes after it, so of the rest of the JSON and of all tensors. Equal contents give equal files.
"""

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from safetensors.torch import save
from torch import Tensor

from overheard.core.errors import OutputError
from overheard.disk.digests import HOW_TO_TRUST, is_store_trusted, refuse_endless, sha256_of

HEAD_BYTES = 200
"""The digest is among the first bytes of a file."""

_STATED = re.compile(
    rb'.{8}\{"__metadata__":\{"[a-z ]{1,40}":"\{\\"sha256\\":\\"([0-9a-f]{64})', re.DOTALL
)
"""The beginning of a file, with its digest: the length of the header, and then the header."""


# Any: JSON.
def encode_with_digest(
    tensors: Mapping[str, Tensor], entry: str, document: Mapping[str, Any]
) -> bytes:
    """Return the content of a file of tensors that states its own SHA-256.

    Args:
        tensors: the tensors; no two of them share memory.
        entry: the name of the metadata entry, in small letters.
        document: what the entry holds, as JSON.

    """
    text = json.dumps({"sha256": "0" * 64, **document}, separators=(",", ":"))
    content = bytearray(save(dict(tensors), {entry: text}))
    stated = _STATED.match(content)
    assert stated, "safetensors writes the metadata first"
    begin, end = stated.span(1)
    content[begin:end] = sha256(memoryview(content)[end:]).hexdigest().encode()
    return bytes(content)


def check_digest(path: Path) -> bool:
    """Compare a file with the SHA-256 that it states; return whether it states one.

    It is read once a process, as `sha256_of`. If the store is trusted, nothing is compared.

    Raises:
        OutputError: if it differs.
        OSError: if it cannot be read.

    """
    refuse_endless(path)
    if is_store_trusted():
        return True
    with path.open("rb") as file:
        stated = _STATED.match(file.read(HEAD_BYTES))
    if not stated:
        return False
    found, expected = sha256_of(path, begin=stated.end(1)), stated[1].decode()
    if found != expected:
        raise OutputError(
            f"{path} was altered after it was written (SHA-256 {found}, written {expected}): "
            f"delete the file, and what it holds is computed again; {HOW_TO_TRUST}"
        )
    return True
