"""Keeps what an audit has found so far, one file a cell, so that nothing is done twice."""

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import final

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from overheard.archive.atomic import write_text
from overheard.core.errors import OutputError
from overheard.findings.finding import Cell, Finding, Refusal

# "constants": the JSON of a figure that is NaN or infinite would else be null, and unreadable.
CONFIG = ConfigDict(extra="forbid", strict=True, ser_json_inf_nan="constants")


@checked_dataclass(frozen=True, config=CONFIG)
class CellResult:
    """All that one cell gave."""

    cell: Cell
    findings: tuple[Finding, ...]
    refusals: tuple[Refusal, ...]


RESULT = TypeAdapter(CellResult)


@final
@dataclass(frozen=True, slots=True)
class CellStore:
    """A folder of finished cells; each is written once, atomically."""

    folder: Path

    def load(self, cell: Cell) -> CellResult | None:
        """What the cell gave when it was run, or None if it was not.

        Raises:
            OutputError: if its file is damaged.

        """
        path = self._path(cell)
        if not path.exists():
            return None
        try:
            result = RESULT.validate_json(path.read_bytes())
        except (ValidationError, OSError) as error:
            raise OutputError(
                f"{path}: not a finished cell: delete the file, and it is computed anew"
            ) from error
        if result.cell != cell:
            raise OutputError(f"{path}: holds another cell: delete the file")
        return result

    def save(self, result: CellResult) -> None:
        """Keep what a cell gave."""
        write_text(self._path(result.cell), RESULT.dump_json(result).decode())

    def _path(self, cell: Cell) -> Path:
        digest = blake2b(repr(cell).encode(), digest_size=12).hexdigest()
        return self.folder / f"{digest}.json"
