"""Logs an audit to Weights & Biases, as one run; without a login, offline."""

import os
from pathlib import Path
from typing import Literal, cast, get_args

from overheard.core.errors import OutputError
from overheard.tracking.logged_audit import LoggedAudit

MAX_NAME = 100
"""Longest name of a run in characters."""

WandbMode = Literal["online", "offline", "disabled", "shared"]
"""The modes of Weights & Biases; only "offline" and "disabled" send nothing."""


def wandb_mode() -> WandbMode:
    """Return WANDB_MODE if it is set, else "online" if WANDB_API_KEY is set, else "offline".

    An audit may not leave the machine unless the user says so.

    Raises:
        OutputError: if WANDB_MODE has another value.

    """
    given = os.environ.get("WANDB_MODE")
    if not given:
        return "online" if os.environ.get("WANDB_API_KEY") else "offline"
    for mode in get_args(WandbMode):
        if given == mode:
            return cast(WandbMode, mode)
    modes = ", ".join(get_args(WandbMode))
    raise OutputError(f"WANDB_MODE is {given!r}: set it to one of {modes}, or unset it")


def log_to_wandb(audit: LoggedAudit, project: str, folder: Path) -> str:
    """Log an audit as a run, and return the folder of the run.

    Neither the console nor the machine, its packages and its Git repository are recorded.

    Args:
        audit: what to log.
        project: the project on Weights & Biases.
        folder: folder of the audit; the run is stored in its subfolder wandb.

    Raises:
        OutputError: if the run cannot be stored.

    """
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    import wandb

    settings = wandb.Settings(
        console="off",
        disable_git=True,
        save_code=False,
        silent=True,
        x_disable_machine_info=True,
        x_disable_meta=True,
        x_disable_stats=True,
        x_save_requirements=False,
    )
    try:
        with wandb.init(
            project=project,
            name=audit.title[:MAX_NAME],
            dir=str(folder),
            mode=wandb_mode(),
            config=dict(audit.tags),
            settings=settings,
        ) as run:
            run.summary.update(dict(audit.metrics))
            artifact = wandb.Artifact("audit", type="audit")
            for path in audit.files:
                # Otherwise each file is copied to a folder outside the audit's.
                artifact.add_file(str(path), policy="immutable")
            run.log_artifact(artifact)
            stored = str(Path(run.dir).parent)
        # Only then has the process that writes the run's file ended.
        wandb.teardown()
    except (wandb.errors.Error, OSError) as error:
        raise OutputError(
            f"the audit in {folder} is complete, but wandb did not store it: {error}"
        ) from error
    return stored
