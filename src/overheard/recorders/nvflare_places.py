"""Where on its machine a recording of an NVFlare run lies."""

from pathlib import Path

from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.app_constant import AppConstants


def last(folder: Path) -> Path:
    """The last of the folders that runs took for which this one was named.

    A run takes the folder itself or, where others are, `NAME-2`, `NAME-3`, ...
    """
    number, found = 2, folder
    while (beside := folder.with_name(f"{folder.name}-{number}")).exists():
        number, found = number + 1, beside
    return found


def is_later(data: Shareable) -> bool:
    """Whether a task is of another round than the first."""
    first = data.get_header(AppConstants.START_ROUND, 0)
    number = data.get_header(AppConstants.CURRENT_ROUND, first)
    return isinstance(number, int) and isinstance(first, int) and number > first


def placed(folder: str, fl_ctx: FLContext) -> Path:
    """Where the folder lies on this machine.

    Raises:
        ValueError: if a relative one leads out of the job's folder.

    """
    if Path(folder).is_absolute():
        return Path(folder)
    home = Path(fl_ctx.get_workspace().get_run_dir(fl_ctx.get_job_id())).resolve()
    inside = (home / folder).resolve()
    if not inside.is_relative_to(home):
        raise ValueError(f"the folder {folder!r} leads out of the job's: name one inside")
    return inside
