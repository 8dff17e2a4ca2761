"""Work that the main process must do, as it alone uses the GPU."""

from typing import final


@final
class LeftToMainProcess(BaseException):
    """A worker process met work for the GPU, which it leaves to the main process.

    No error, so that no attack takes it for one of its own.
    """


_IS_WORKER: list[bool] = []


def become_worker() -> None:
    """Leave all work for the GPU to the main process from now on.

    Each process that uses a GPU needs a context of its own in its memory.
    """
    _IS_WORKER[:] = [True]


def require_main_process() -> None:
    """Go on only in the main process.

    Raises:
        LeftToMainProcess: in a worker process.

    """
    if _IS_WORKER:
        raise LeftToMainProcess
