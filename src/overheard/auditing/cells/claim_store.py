"""The claims of finished cells, one file a cell, so that no attack is run twice.

A file is a safetensors file: its tensors are those of the claims, and its metadata hold the
rest as JSON, with the digest of the file (`archive.self_digest`). The claims stay in the folder
of the audit. What is handed on, such as findings.json, has only their numbers
(`Claim.numbers`): tensors that a claim holds besides, such as those of its pictures
(`Claim.pictures`), are private to whoever has the folder.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast, final

from safetensors import safe_open

from overheard.archive.self_digest import check_digest, encode_with_digest
from overheard.archive.value_codec import Json, ValueDecoder, ValueEncoder
from overheard.auditing.cells.cell_claims import CellClaims, TargetClaim
from overheard.core.claims import Claim
from overheard.core.errors import ClaimError, OutputError
from overheard.core.parties import Party
from overheard.disk.digests import usable_codes
from overheard.disk.writing import write_bytes
from overheard.findings.finding import Cell


class ClaimStore(ABC):
    """Where the claims of cells are kept, if anywhere."""

    @abstractmethod
    def load(self, cell: Cell, claim_type: type[Claim], code: str = "") -> CellClaims | None:
        """Load the claims of a cell; None if they are not kept, or other code made them."""

    @abstractmethod
    def save(self, claims: CellClaims) -> None:
        """Keep the claims of a cell."""


@final
@dataclass(frozen=True, slots=True)
class NoClaimStore(ClaimStore):
    """Keeps nothing, for cells that are never asked about again."""

    def load(self, cell: Cell, claim_type: type[Claim], code: str = "") -> CellClaims | None:
        """Return None."""
        return None

    def save(self, claims: CellClaims) -> None:
        """Do nothing."""


@final
@dataclass(frozen=True, slots=True)
class FolderClaimStore(ClaimStore):
    """A folder with a file for each cell; each file is written atomically.

    Args:
        folder: the folder.
        inside: the output folder that it is in; None = they are one.

    """

    folder: Path
    inside: Path | None = None

    def load(self, cell: Cell, claim_type: type[Claim], code: str = "") -> CellClaims | None:
        """Load the claims of a cell; None if they are not kept, or other code made them.

        A file that states no digest, as an older Overheard wrote, is not loaded.

        Args:
            cell: the cell.
            claim_type: the type of its claims.
            code: the digest of the code that makes them now.

        Raises:
            OutputError: if the file is damaged, or differs from its digest.

        """
        path = self._path(cell)
        if not path.exists():
            return None
        try:
            has_digest = check_digest(path)
            claims = read_cell_claims(path, claim_type)
        except (MemoryError, OutputError):
            raise
        # The class of a claim, which may be somebody's own, may raise any exception.
        except Exception as error:
            raise _damaged(path, error) from error
        if claims.cell != cell:
            raise OutputError(f"{path}: contains another cell's claims: delete the file")
        return claims if has_digest and claims.code in usable_codes(code) else None

    def save(self, claims: CellClaims) -> None:
        """Write the claims of a cell.

        Raises:
            ClaimError: if a claim holds what cannot be stored, or not read again.
            OutputError: if the file cannot be written.

        """
        content = encode_cell_claims(claims)
        write_bytes(self._path(claims.cell), content, inside=self.inside or self.folder)

    def _path(self, cell: Cell) -> Path:
        digest = blake2b(repr(cell).encode(), digest_size=12).hexdigest()
        return self.folder / f"{digest}.safetensors"


def _damaged(path: Path, error: Exception) -> OutputError:
    return OutputError(
        f"{path}: not the claims of a finished attack ({error}): delete the file, and the "
        "attack is run again"
    )


def encode_cell_claims(claims: CellClaims) -> bytes:
    """Return the content of the file of a cell.

    Raises:
        ClaimError: if a claim holds what cannot be stored, or not read again, such as a tensor
            in a field for a float.

    """
    encoder = ValueEncoder()
    content = cast(dict[str, Any], encoder.encode(claims))
    _check_readable(claims, content, ValueDecoder(encoder.tensors, encoder.texts))
    # Copies, as tensors that share memory cannot be saved.
    tensors = {str(place): tensor.clone() for place, tensor in enumerate(encoder.tensors)}
    return encode_with_digest(tensors, "claims", {"content": content, "texts": encoder.texts})


def _check_readable(
    claims: CellClaims,
    # Any: JSON of a known shape.
    content: Mapping[str, Any],
    decoder: ValueDecoder,
) -> None:
    """Check that the first claim can be read again. The types of all are declared once."""
    for (_, encoded), about in zip(content["claims"][:1], claims.claims.values(), strict=False):
        claim_type = type(about.claim)
        try:
            _decode_claim(decoder, encoded, claim_type)
        # The class of a claim, which may be somebody's own, may raise any exception.
        except Exception as error:
            raise ClaimError(
                f"a {claim_type.__name__} could not be read again if it was stored: {error}"
            ) from error


def read_cell_claims(path: Path, claim_type: type[Claim]) -> CellClaims:
    """Read the file of a cell whose claims are of this type.

    Raises:
        Exception: of any kind, if it is damaged.

    """
    with safe_open(path, framework="pt") as file:
        document = json.loads((file.metadata() or {})["claims"])
        tensors = [file.get_tensor(str(place)) for place in range(len(file.keys()))]
    decoder, content = ValueDecoder(tensors, document["texts"]), document["content"]
    return CellClaims(
        decoder.decode(content["cell"], Cell),
        {
            decoder.decode(party, Party): _decode_claim(decoder, claim, claim_type)
            for party, claim in content["claims"]
        },
        decoder.decode(content["refusals"], Mapping[Party, tuple[str, ...]]),
        decoder.decode(content["code"], str),
    )


def _decode_claim(
    decoder: ValueDecoder, content: Mapping[str, Json], claim_type: type[Claim]
) -> TargetClaim:
    return TargetClaim(
        decoder.decode(content["claim"], claim_type),
        decoder.decode(content["guesses"], Mapping[str, claim_type]),  # type: ignore[valid-type]
        decoder.decode(content["sent_rounds"], tuple[int, ...]),
        # Absent in files that are older than joint claims.
        decoder.decode(content.get("targets", []), tuple[Party, ...]),
    )
