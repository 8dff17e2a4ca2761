"""The output folder of one audit: made for one plan, and never taken from another."""

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import final

from overheard.archive.atomic import write_text
from overheard.core.errors import OutputError


@final
@dataclass(frozen=True, slots=True)
class AuditFolder:
    """Where an audit leaves what it finds, and takes up again what it left.

    Args:
        path: the folder; made where it does not exist.

    """

    path: Path

    def check(self, plan: str) -> None:
        """See that the folder is this plan's, or can be; touches nothing.

        Raises:
            OutputError: if it is another plan's or holds other things.

        """
        if self._record.is_file():
            self._compare(self._record.read_text(encoding="utf-8", errors="replace"), plan)
        elif self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise OutputError(
                f"{self.path}: is no empty folder and no audit's: choose another with --out"
            )

    def claim(self, plan: str) -> None:
        """Make the folder this plan's.

        Raises:
            OutputError: as `check`, or if the disk or the permissions do not allow it.

        """
        self.check(plan)
        if not self._record.exists():
            write_text(self._record, plan)

    def run(self, arm: str, seed: int, *, is_control: bool = False) -> Path:
        """Where the transcript and the truth of one federation are kept."""
        name = f"{arm.replace(' ', '_')}-seed{seed}"
        return self.path / "runs" / (f"{name}-control" if is_control else name)

    @property
    def cells(self) -> Path:
        """Where finished cells are kept."""
        return self.path / "cells"

    @property
    def bank(self) -> Path:
        """Where what is read off virtual clients is kept, for all cells."""
        return self.path / "bank"

    @property
    def _record(self) -> Path:
        return self.path / "plan.toml"

    def _compare(self, there: str, plan: str) -> None:
        if there == plan:
            return
        changes = [
            line
            for line in difflib.unified_diff(there.splitlines(), plan.splitlines(), n=0)
            if line[:1] in "+-" and line[:3] not in {"+++", "---"}
        ]
        raise OutputError(
            f"{self.path}: holds the audit of another plan ("
            + "; ".join(changes[:4])
            + "): choose another folder with --out, or remove this one"
        )
