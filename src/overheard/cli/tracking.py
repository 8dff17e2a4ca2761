"""Logs a finished audit to the trackers that the options name."""

from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from overheard.cli.terminal import escaped_text
from overheard.core.errors import OutputError


def require_trackers(mlflow: str | None, wandb: str | None) -> None:
    """Refuse before an audit runs if the package of a tracker is not installed.

    Args:
        mlflow: the MLflow store; None = not wanted.
        wandb: the project on Weights & Biases; None = not wanted.

    Raises:
        OutputError: if a package is missing.

    """
    for name, wanted in (("mlflow", mlflow), ("wandb", wandb)):
        if wanted is not None and find_spec(name) is None:
            raise OutputError(
                f"--{name} needs another package: pip install '.[{name}]' in a checkout of "
                "Overheard"
            )


def log_audit(folder: Path, mlflow: str | None, wandb: str | None, console: Console) -> None:
    """Log the audit in a folder, and print where it is.

    Args:
        folder: folder of the finished audit.
        mlflow: the MLflow store; None = not wanted.
        wandb: the project on Weights & Biases; None = not wanted.
        console: where to print.

    Raises:
        OutputError: if a tracker does not store it.

    """
    if mlflow is None and wandb is None:
        return
    from overheard.tracking.logged_audit import read_logged_audit

    audit = read_logged_audit(folder)
    if mlflow is not None:
        from overheard.tracking.mlflow_run import log_to_mlflow

        run = log_to_mlflow(audit, mlflow, folder)
        console.print(escaped_text(f"Logged to MLflow: run {run}"))
    if wandb is not None:
        from overheard.tracking.wandb_run import log_to_wandb, wandb_mode

        stored = log_to_wandb(audit, wandb, folder)
        console.print(escaped_text(f"Logged to W&B ({wandb_mode()}): {stored}"), soft_wrap=True)
