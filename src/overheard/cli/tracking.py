"""Logs a finished audit to MLflow, if its option is given."""

from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from overheard.cli.terminal import escaped_text
from overheard.core.errors import OutputError


def require_mlflow(store: str | None) -> None:
    """Refuse before an audit runs if MLflow is wanted and not installed.

    Args:
        store: the MLflow store; None = not wanted.

    Raises:
        OutputError: if the package is missing.

    """
    if store is not None and find_spec("mlflow") is None:
        raise OutputError(
            "--mlflow needs another package: pip install '.[mlflow]' in a checkout of Overheard"
        )


def log_audit(folder: Path, store: str | None, console: Console) -> None:
    """Log the audit in a folder, and print where it is.

    Args:
        folder: folder of the finished audit.
        store: the MLflow store; None = not wanted.
        console: where to print.

    Raises:
        OutputError: if MLflow does not store it.

    """
    if store is None:
        return
    from overheard.tracking.mlflow_run import log_to_mlflow, read_logged_audit

    run = log_to_mlflow(read_logged_audit(folder), store, folder)
    console.print(escaped_text(f"Logged to MLflow: run {run}"))
