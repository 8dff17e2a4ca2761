"""The output folder of an audit, which belongs to one plan."""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import final

from pydantic import ConfigDict, TypeAdapter, ValidationError

from overheard.archive.purge_note import read_purge_note
from overheard.archive.tensor_cache import FolderTensorCache
from overheard.core.errors import OutputError
from overheard.disk.folder_lock import LOCK_FILE
from overheard.disk.folders import remove_folder
from overheard.disk.reading import parse_toml, read_json_text, read_small_file
from overheard.disk.writing import is_partial, write_text

ORIGIN = TypeAdapter(dict[str, str], config=ConfigDict(strict=True))

DATA = "data "
"""What an origin's names of data begin with; its other names are those of modules."""

RECORDING_LINE = "# recording "
"""How the line begins that names a recording in the text of a folder's plan."""

UNKNOWN_ORIGIN = "it is not known which"
"""What differs from the origin of a run that does not state its own."""


def default_folder(plan: Path | None) -> Path:
    """Return where an audit is written unless told; None = the built-in plan."""
    return Path("audit" if plan is None else f"{plan.stem}-audit")


def free_folder(plan: Path | None) -> Path:
    """Return the default folder if it does not exist or is empty, else one with a number."""
    wanted = folder = default_folder(plan)
    number = 1
    while folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        number += 1
        folder = wanted.with_name(f"{wanted.name}-{number}")
    return folder


def run_folder(arm: str, seed: int, suffix: str = "") -> Path:
    """Return the folder of a run within that of its audit; see `AuditFolder.run_path`."""
    return Path("runs", f"{arm.replace(' ', '_')}-seed{seed}{suffix}")


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

        A folder also belongs to a plan that differs only by further seeds after the same ones,
        and by other arms. Arms of one name must be equal.

        Raises:
            OutputError: if it belongs to another plan, was purged, or holds other files.

        """
        self.refuse_purged()
        existing = self.plan_text()
        if existing is not None:
            self._refuse_other_plan(existing, plan)
        elif self.path.exists() and (not self.path.is_dir() or self._has_files()):
            raise OutputError(
                f"{self.path}: is neither empty nor the folder of an audit: choose another "
                "folder with --out"
            )

    def refuse_purged(self) -> None:
        """Check that the folder was not purged.

        Raises:
            OutputError: if it was.

        """
        if (note := read_purge_note(self.path)) is not None:
            raise OutputError(f"{note.sentence(self.path)}: choose another folder with --out")

    def reserve(self, plan: str) -> None:
        """Write the plan to the folder, which then belongs to it.

        If the plan only has further seeds or arms, everything is kept. If an arm is missing,
        its name becomes free, so the claims of finished attacks are dropped. Federations and
        simulations, which take most of the time, are kept.

        Raises:
            OutputError: as `check_plan`, or if the folder cannot be written.

        """
        self.check_plan(plan)
        existing = self.plan_text()
        if existing not in (None, plan) and _only_adds(plan, existing):
            write_text(self._plan_path, plan, inside=self.path)
        else:
            self.replace_plan(plan)

    def replace_plan(self, plan: str) -> None:
        """Write another text that says to whom the folder belongs, and drop finished cells.

        Nothing changes if the folder has this text already. Simulations are kept: they are
        stored under all that could change them.

        Raises:
            OutputError: if the folder cannot be written.

        """
        if self.plan_text() == plan:
            return
        remove_folder(self.cells_path, inside=self.path)
        write_text(self._plan_path, plan, inside=self.path)

    def is_reserved(self) -> bool:
        """Return whether the folder has the plan of an audit, which may be damaged."""
        return self._plan_path.is_file()

    def plan_text(self) -> str | None:
        """Return the text that says to whom the folder belongs; None = it is free."""
        if not self.is_reserved():
            return None
        return read_small_file(self._plan_path, OutputError).decode("utf-8", "replace")

    def run_path(self, arm: str, seed: int, suffix: str = "") -> Path:
        """Return the folder of one federation's transcript and ground truth.

        Args:
            arm: name of the arm.
            seed: seed of the run.
            suffix: what the name ends in: "" for a planned run, "-control" for its first
                control, see `auditing.run_kinds.RunKind`.

        """
        return self.path / run_folder(arm, seed, suffix)

    def changed_origin(self, run: Path, origin: Mapping[str, str]) -> tuple[str, ...]:
        """Return what made a run and differs now: names of data, then modules of code.

        Args:
            run: the folder of the run; () is returned if it does not exist.
            origin: digests of all that the run depends on now, see `program.run_origin`.

        """
        if not run.exists():
            return ()
        try:
            made_by = ORIGIN.validate_json(read_json_text(self._origin_path(run), OutputError))
        except (OutputError, ValidationError):
            return (UNKNOWN_ORIGIN,)
        names = sorted(
            made_by.keys() | origin.keys(), key=lambda name: (not _is_data(name), name)
        )
        return tuple(one for one in names if made_by.get(one) != origin.get(one))

    def is_kept(self, run: Path, origin: Mapping[str, str], *, rerun: bool) -> bool:
        """Return whether no other code or data made a run than those of now.

        Args:
            run: its folder.
            origin: digests of all that it depends on now.
            rerun: whether a run that others made is trained anew, and not refused.

        Raises:
            OutputError: if others made it, and it is not to be trained anew.

        """
        changed = self.changed_origin(run, origin)
        if changed and not rerun:
            kinds = dict.fromkeys("data" if _is_data(one) else "code" for one in changed)
            names = [one.removeprefix(DATA) for one in changed]
            more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
            raise OutputError(
                f"{run}: other {' and '.join(kinds)} made this run (changed: "
                f"{', '.join(names[:3])}{more}): train it anew with --rerun, which replaces "
                "it, or choose another folder with --out"
            )
        return not changed

    def discard_other_origin(self, run: Path, origin: Mapping[str, str]) -> None:
        """Remove a run that other code or data made than those of now.

        Raises:
            OutputError: if it cannot be removed.

        """
        if self.changed_origin(run, origin):
            remove_folder(run, inside=self.path)

    def begin_run(self, run: Path, origin: Mapping[str, str]) -> None:
        """Write which code and data make a run, unless that is already written.

        Raises:
            OutputError: if the folder cannot be written.

        """
        if not self._origin_path(run).exists():
            text = f"{json.dumps(origin, indent=0)}\n"
            write_text(self._origin_path(run), text, inside=self.path)

    def _origin_path(self, run: Path) -> Path:
        return run / "origin.json"

    @property
    def cells_path(self) -> Path:
        """The folder of finished cells."""
        return self.path / "cells"

    def tensor_cache(self, elsewhere: Path | None) -> FolderTensorCache:
        """Return the cache of simulation results, which all cells share.

        Args:
            elsewhere: a folder that several audits share; None = it is in this folder.

        """
        if elsewhere is not None:
            return FolderTensorCache(elsewhere)
        return FolderTensorCache(self.path / "bank", self.path)

    def _has_files(self) -> bool:
        ignored = (LOCK_FILE, self.followed_path.name)
        return any(
            path.name not in ignored and not is_partial(path) for path in self.path.iterdir()
        )

    @property
    def followed_path(self) -> Path:
        """The file that says which recording is followed."""
        return self.path / "followed.json"

    @property
    def _plan_path(self) -> Path:
        return self.path / "plan.toml"

    def _refuse_other_plan(self, existing: str, plan: str) -> None:
        if existing == plan:
            return
        before, now = _split_plan(existing), _split_plan(plan)
        if _recording_line(existing) != _recording_line(plan):
            difference, mend = "it is of another recording, or this one was changed since", ""
        elif before is None or now is None or before.rest != now.rest:
            changes = [
                line
                for line in difflib.unified_diff(existing.splitlines(), plan.splitlines(), n=0)
                if line[:1] in "+-" and line[:3] not in {"+++", "---"}
            ]
            difference, mend = "; ".join(changes[:4]), ""
        elif now.seeds[: len(before.seeds)] != before.seeds:
            difference = f"its seeds are {', '.join(map(str, before.seeds))}"
            mend = f"begin with the same seeds, such as with --runs {len(before.seeds)}, "
        else:
            changed = [
                name for name, arm in now.arms.items() if before.arms.get(name, arm) != arm
            ]
            if not changed:
                return
            difference = f"its arm {changed[0]!r} has other settings"
            mend = "give the arm another name, "
        raise OutputError(
            f"{self.path}: holds the audit of another plan ({difference}): {mend}choose "
            "another folder with --out, or remove this one"
        )


def _is_data(name: str) -> bool:
    return name.startswith(DATA)


@final
@dataclass(frozen=True, slots=True)
class _SplitPlan:
    """The text of a plan, by what may change while a folder stays its own."""

    seeds: list[int]
    arms: Mapping[str, object]
    rest: object


def _split_plan(text: str) -> _SplitPlan | None:
    """Split the text of a plan; None = it is no plan."""
    try:
        document = dict(parse_toml(text, "plan.toml", OutputError))
        seeds, arms = list(document.pop("seeds")), document.pop("arms", [])
        named = {str(arm["name"]): arm for arm in arms}
    except (OutputError, KeyError, TypeError):
        return None
    if not all(isinstance(seed, int) for seed in seeds):
        return None
    return _SplitPlan(seeds, named, (_comments(text), document))


def _only_adds(plan: str, existing: str) -> bool:
    """Return whether a plan that continues another one has all its arms."""
    before, now = _split_plan(existing), _split_plan(plan)
    return before is not None and now is not None and before.arms.keys() <= now.arms.keys()


def _recording_line(text: str) -> str:
    """Return the line with the digest of the recording; "" = the runs are simulated."""
    return next((line for line in _comments(text) if line.startswith(RECORDING_LINE)), "")


def _comments(text: str) -> list[str]:
    """Return the first lines, which name versions and the recording."""
    return list(takewhile(lambda line: line.startswith("#"), text.splitlines()))
