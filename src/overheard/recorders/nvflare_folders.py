"""Folders of recordings of NVFlare runs."""

from pathlib import Path

from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.app_constant import AppConstants


def last_run_folder(folder: Path) -> Path:
    """Return the last folder that a run used when this folder was requested.

    A run uses the folder itself or, if it is taken, `NAME-2`, `NAME-3`, ...
    """
    suffix, found = 2, folder
    while (candidate := folder.with_name(f"{folder.name}-{suffix}")).exists():
        suffix, found = suffix + 1, candidate
    return found


def is_later_round(data: Shareable) -> bool:
    """Return whether a task belongs to a later round than the first."""
    first = data.get_header(AppConstants.START_ROUND, 0)
    number = data.get_header(AppConstants.CURRENT_ROUND, first)
    return isinstance(number, int) and isinstance(first, int) and number > first


def resolve_folder(folder: str, fl_ctx: FLContext) -> Path:
    """Resolve the folder on this machine.

    Raises:
        ValueError: if a relative folder leaves the job's folder.

    """
    if Path(folder).is_absolute():
        return Path(folder)
    job_folder = Path(fl_ctx.get_workspace().get_run_dir(fl_ctx.get_job_id())).resolve()
    resolved = (job_folder / folder).resolve()
    if not resolved.is_relative_to(job_folder):
        raise ValueError(
            f"the folder {folder!r} is outside the job's folder: choose one inside"
        )
    return resolved
