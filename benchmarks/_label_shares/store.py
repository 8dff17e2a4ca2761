"""Results of cells, stored in one file each, so that nothing is measured twice."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import ClassVar, final

from pydantic import ConfigDict, TypeAdapter, ValidationError

from _label_shares.grid import Cell, Scale
from overheard.archive.atomic import write_text
from overheard.core.attack import Attack
from overheard.core.errors import OutputError
from overheard.questions.label_shares.claim import LabelShares


@dataclass(frozen=True, slots=True)
class ClientResult:
    """Scores of one attack on one client.

    Args:
        target: the client.
        l1: sum of the absolute errors of the shares, 0 to 2.
        blind: l1 of claiming even shares.
        coverage: fraction of true shares inside the claimed intervals; None without intervals.
        width: mean width of these intervals.
        doubted: 1 if the attack says that they cannot be trusted, else 0; None without.

    """

    target: str
    l1: float
    blind: float
    coverage: float | None = None
    width: float | None = None
    doubted: float | None = None


@dataclass(frozen=True, slots=True)
class CellResult:
    """Result of one cell.

    Args:
        cell: name of the cell.
        attack: settings of the attack.
        seconds: CPU seconds, without cached work.
        told: scores by client.

    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid")

    cell: str
    attack: str
    seconds: float
    told: tuple[ClientResult, ...]


CELL_RESULT = TypeAdapter(CellResult)


@final
@dataclass(frozen=True, slots=True)
class Store:
    """A folder of cell results, all of one scale.

    Args:
        folder: created if it does not exist.
        attacks: attacks by name; other settings make another cell.

    """

    folder: Path
    attacks: Mapping[str, Attack[LabelShares]]

    def claim(self, scale: Scale) -> None:
        """Reserve the folder for this scale.

        Raises:
            OutputError: if the folder has another scale.

        """
        path, text = self.folder / "scale.json", TypeAdapter(Scale).dump_json(scale)
        if not path.exists():
            write_text(path, text.decode())
        elif path.read_bytes() != text:
            raise OutputError(
                f"{self.folder}: has results of the scale {path.read_text()}, not of "
                f"{asdict(scale)}: choose another folder with --out"
            )

    def has(self, cell: Cell) -> bool:
        """Return whether the cell was measured."""
        return self._path(cell).exists()

    def load(self, cell: Cell) -> CellResult | None:
        """Return the result of the cell, or None if it was not measured.

        Raises:
            OutputError: if its file is damaged.

        """
        path = self._path(cell)
        if not path.exists():
            return None
        try:
            return CELL_RESULT.validate_json(path.read_bytes())
        except ValidationError as error:
            raise OutputError(f"{path}: not a valid cell result: delete the file") from error

    def save(self, cell: Cell, result: CellResult) -> None:
        """Store the result of the cell."""
        write_text(self._path(cell), CELL_RESULT.dump_json(result).decode())

    def _path(self, cell: Cell) -> Path:
        settings = blake2b(repr(self.attacks[cell.attack]).encode(), digest_size=4).hexdigest()
        return self.folder / "cells" / f"{cell.name.replace(' ', '-')}_{settings}.json"
