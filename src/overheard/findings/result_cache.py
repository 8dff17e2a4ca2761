"""Cache of finished cells, one file a cell, so that no cell is computed twice."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import final

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from overheard.archive.atomic import write_text
from overheard.core.errors import OutputError
from overheard.findings.finding import Cell, Finding, Refusal

# "constants": otherwise NaN and infinity become null in JSON, which cannot be read back.
CONFIG = ConfigDict(extra="forbid", strict=True, ser_json_inf_nan="constants")


@checked_dataclass(frozen=True, config=CONFIG)
class CellResult:
    """The findings and refusals of one cell.

    Args:
        cell: the cell.
        findings: one entry per target of the attack.
        refusals: one entry per target about which the attack could not run.
        code: the digest of the code that computed them; "" = not known.

    """

    cell: Cell
    findings: tuple[Finding, ...]
    refusals: tuple[Refusal, ...]
    code: str = ""


CELL_RESULT = TypeAdapter(CellResult)


class ResultStore(ABC):
    """Where the results of cells are kept, if anywhere."""

    @abstractmethod
    def load(self, cell: Cell, code: str = "") -> CellResult | None:
        """Load the cell's result; None if it is not kept, or other code computed it."""

    @abstractmethod
    def save(self, result: CellResult) -> None:
        """Keep a cell's result."""


@final
@dataclass(frozen=True, slots=True)
class NoResultCache(ResultStore):
    """Keeps nothing, for cells that are never asked about again."""

    def load(self, cell: Cell, code: str = "") -> CellResult | None:
        """Return None."""
        return None

    def save(self, result: CellResult) -> None:
        """Do nothing."""


@final
@dataclass(frozen=True, slots=True)
class ResultCache(ResultStore):
    """A folder of cached cell results; each file is written atomically."""

    folder: Path

    def load(self, cell: Cell, code: str = "") -> CellResult | None:
        """Load the cell's result; None if it is not cached, or other code computed it.

        Args:
            cell: the cell.
            code: the digest of the code that computes the cell now.

        Raises:
            OutputError: if the file is damaged.

        """
        path = self._path(cell)
        if not path.exists():
            return None
        try:
            result = CELL_RESULT.validate_json(path.read_bytes())
        except (ValidationError, OSError) as error:
            raise OutputError(
                f"{path}: not a valid cached result: delete the file, and it is computed again"
            ) from error
        if result.cell != cell:
            raise OutputError(f"{path}: contains another cell's result: delete the file")
        return result if result.code == code else None

    def save(self, result: CellResult) -> None:
        """Cache a cell's result."""
        write_text(self._path(result.cell), CELL_RESULT.dump_json(result).decode())

    def _path(self, cell: Cell) -> Path:
        digest = blake2b(repr(cell).encode(), digest_size=12).hexdigest()
        return self.folder / f"{digest}.json"
