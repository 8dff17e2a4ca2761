"""The output folder of an audit, which belongs to one plan."""

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import final

from overheard.archive.atomic import write_text
from overheard.core.errors import OutputError


@final
@dataclass(frozen=True, slots=True)
class AuditFolder:
    """The folder in which an audit stores its results, and from which it resumes.

    Args:
        path: the folder; created if it does not exist.

    """

    path: Path

    def check_plan(self, plan: str) -> None:
        """Check that the folder belongs to this plan or is free; change nothing.

        Raises:
            OutputError: if it belongs to another plan or holds other files.

        """
        if self._plan_path.is_file():
            self._refuse_other_plan(
                self._plan_path.read_text(encoding="utf-8", errors="replace"), plan
            )
        elif self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise OutputError(
                f"{self.path}: is neither empty nor the folder of an audit: choose another "
                "folder with --out"
            )

    def reserve(self, plan: str) -> None:
        """Write the plan to the folder, which then belongs to it.

        Raises:
            OutputError: as `check`, or if the folder cannot be written.

        """
        self.check_plan(plan)
        if not self._plan_path.exists():
            write_text(self._plan_path, plan)

    def run_path(self, arm: str, seed: int, suffix: str = "") -> Path:
        """Return the folder of one federation's transcript and ground truth.

        Args:
            arm: name of the arm.
            seed: seed of the run.
            suffix: what the name ends in: "" for a planned run, "-control" for its first
                control, see `auditing.work_items.RunKind`.

        """
        return self.path / "runs" / f"{arm.replace(' ', '_')}-seed{seed}{suffix}"

    @property
    def cells_path(self) -> Path:
        """The folder of finished cells."""
        return self.path / "cells"

    @property
    def simulation_path(self) -> Path:
        """The folder of cached simulation results, shared by all cells."""
        return self.path / "bank"

    @property
    def _plan_path(self) -> Path:
        return self.path / "plan.toml"

    def _refuse_other_plan(self, existing: str, plan: str) -> None:
        if existing == plan:
            return
        changes = [
            line
            for line in difflib.unified_diff(existing.splitlines(), plan.splitlines(), n=0)
            if line[:1] in "+-" and line[:3] not in {"+++", "---"}
        ]
        raise OutputError(
            f"{self.path}: holds the audit of another plan ("
            + "; ".join(changes[:4])
            + "): choose another folder with --out, or remove this one"
        )
