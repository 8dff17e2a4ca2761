"""Keeps what each cell gave in a file of its own, so that nothing is measured twice."""

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
class Told:
    """How well one attack told the shares of one client.

    Args:
        target: the client.
        l1: sum of the absolute errors of the shares, 0 to 2.
        blind: the same for claiming all labels alike.
        coverage: which part of the shares lies in the claim's intervals; None = it has none.
        width: mean width of these intervals.

    """

    target: str
    l1: float
    blind: float
    coverage: float | None = None
    width: float | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What one cell gave.

    Args:
        cell: its name.
        attack: its settings.
        seconds: of CPU, without what it found on the shelf.
        told: client by client.

    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid")

    cell: str
    attack: str
    seconds: float
    told: tuple[Told, ...]


MEASURED = TypeAdapter(Measured)


@final
@dataclass(frozen=True, slots=True)
class Store:
    """A folder of measured cells, all of one scale.

    Args:
        folder: made where it does not exist.
        attacks: by name; a cell of an attack with other settings is another cell.

    """

    folder: Path
    attacks: Mapping[str, Attack[LabelShares]]

    def claim(self, scale: Scale) -> None:
        """Make the folder this scale's.

        Raises:
            OutputError: if it is another's.

        """
        record, wanted = self.folder / "scale.json", TypeAdapter(Scale).dump_json(scale)
        if not record.exists():
            write_text(record, wanted.decode())
        elif record.read_bytes() != wanted:
            raise OutputError(
                f"{self.folder}: holds figures of the scale {record.read_text()}, not of "
                f"{asdict(scale)}: choose another folder with --out"
            )

    def has(self, cell: Cell) -> bool:
        """Whether the cell was measured."""
        return self._path(cell).exists()

    def load(self, cell: Cell) -> Measured | None:
        """What the cell gave, or None if it was not measured yet.

        Raises:
            OutputError: if its file is damaged.

        """
        path = self._path(cell)
        if not path.exists():
            return None
        try:
            return MEASURED.validate_json(path.read_bytes())
        except ValidationError as error:
            raise OutputError(f"{path}: no measured cell: delete the file") from error

    def save(self, cell: Cell, measured: Measured) -> None:
        """Keep what the cell gave."""
        write_text(self._path(cell), MEASURED.dump_json(measured).decode())

    def _path(self, cell: Cell) -> Path:
        settings = blake2b(repr(self.attacks[cell.attack]).encode(), digest_size=4).hexdigest()
        return self.folder / "cells" / f"{cell.name.replace(' ', '-')}_{settings}.json"
