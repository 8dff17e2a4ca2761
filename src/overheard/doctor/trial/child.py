"""The process in which an app runs."""

import os
import sys
from importlib.abc import PathEntryFinder
from importlib.machinery import FileFinder, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, final

from pydantic import TypeAdapter

from overheard.core.custom_code.reference import find_module_file, import_reference
from overheard.core.errors import AuditError, PlanError
from overheard.disk.writing import write_text
from overheard.doctor.source.files import digest_files, read_app_files
from overheard.doctor.trial.request import TrialRequest

ERROR_FILE = "error.txt"
"""The file with the message of an error that the user can correct."""


def main(request_text: str, told: Path) -> None:
    """Run an app and record it; an error that the user can correct is written to a file."""
    request = TypeAdapter(TrialRequest).validate_json(request_text)
    try:
        run_app(request)
    except AuditError as error:
        write_text(told, str(error), inside=told.parent)


def run_app(request: TrialRequest) -> None:
    """Run an app in this process, in its own folder, and record it.

    Raises:
        PlanError: if the app has changed, a component is missing or elsewhere, its server
            fails, or no client trains.

    """
    if digest_files(read_app_files(request.folder)) != request.digest:
        raise PlanError(
            f"{request.folder}: its code changed after it was described: review it again"
        )
    from overheard.doctor.trial.one_process import OneProcessGrid, context_of
    from overheard.recorders.flower import RecordingGrid

    os.chdir(request.folder)
    # After all other places, so that no module of the app hides another one.
    sys.path.append(str(request.folder))
    _import_sources_alone(request.folder)
    for reference in (request.server, request.client):
        _check_place(reference, request.folder)
    _state_task()
    client: Any = import_reference(request.client, "the client", PlanError)
    server: Any = import_reference(request.server, "the server", PlanError)
    grid = OneProcessGrid(client, request.clients, request.config)
    with RecordingGrid(grid, request.recording) as recording:
        # An app of the user may fail in any way.
        try:
            server(recording, context_of(0, request.config))
        except (Exception, SystemExit) as error:
            raise PlanError(
                f"{request.folder}: its server ended with {type(error).__name__}: "
                f"{str(error)[:300]}. Does `flwr run` end well in this folder?"
            ) from error
    if grid.failure and not grid.trained:
        raise PlanError(
            f"{request.folder}: each client that was asked to train ended with an error, first "
            f"{grid.failure}. Does `flwr run` end well in this folder?"
        )


@final
class _SourceLoader(SourceFileLoader):
    """Compiles the source of a module each time it is imported."""

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the source; compiled files beside it may be of another one."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _import_sources_alone(folder: Path) -> None:
    """Let modules below a folder be imported from their source, which was described."""
    sources = FileFinder.path_hook((_SourceLoader, [".py"]))

    def find(path: str) -> PathEntryFinder:
        if not Path(path).resolve().is_relative_to(folder):
            raise ImportError
        return sources(path)

    sys.path_hooks.insert(0, find)
    sys.path_importer_cache.clear()


def _check_place(reference: str, folder: Path) -> None:
    """Refuse a component that would be imported from elsewhere than it was read."""
    file = find_module_file(reference.partition(":")[0], folder)
    if file is not None and not file.resolve().is_relative_to(folder):
        raise PlanError(
            f"{folder}: {reference} is also installed, in {file.parent}, and that one would "
            "run: uninstall it"
        )


def _state_task() -> None:
    """Tell Flower, from 1.41 on, in whose name messages are sent."""
    try:
        from flwr.supercore.task_identity import TaskIdentity
    except ImportError:
        return
    TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1


if __name__ == "__main__":
    main(sys.stdin.read(), Path(sys.argv[1]))
