"""Logs an audit to MLflow, as one run."""

import os
import time
from pathlib import Path

from overheard.core.errors import OutputError
from overheard.tracking.logged_audit import LoggedAudit

DEFAULT_STORE = "default"
"""Stands for the store that MLflow's own settings name, such as MLFLOW_TRACKING_URI."""

EXPERIMENT = "overheard"
"""The experiment, unless MLFLOW_EXPERIMENT_NAME names another one."""

BATCH = 1000
"""Most metrics that MLflow accepts at once."""

MAX_TAGS = 100
"""Most tags that MLflow accepts at once."""

MAX_NAME = 100
"""Longest name of a run in characters."""


def log_to_mlflow(audit: LoggedAudit, store: str, folder: Path) -> str:
    """Log an audit as a run, and return the id of the run.

    MLflow sends no usage statistics unless MLFLOW_DISABLE_TELEMETRY is set to false.

    Args:
        audit: what to log.
        store: URI of the MLflow server or store; "default" = that of MLflow's own settings.
        folder: folder of the audit, for messages.

    Raises:
        OutputError: if MLflow cannot store the run.

    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    # MLflow's own default waits four minutes for a server that does not exist.
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")
    from mlflow.entities import Metric, RunTag
    from mlflow.exceptions import MlflowException
    from mlflow.tracking import MlflowClient

    now = int(time.time() * 1000)
    try:
        client = MlflowClient(tracking_uri=None if store == DEFAULT_STORE else store)
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", EXPERIMENT)
        experiment = client.get_experiment_by_name(name)
        number = (
            client.create_experiment(name) if experiment is None else experiment.experiment_id
        )
        run = client.create_run(number, run_name=audit.title[:MAX_NAME])
        metrics = [Metric(key, value, now, 0) for key, value in audit.metrics.items()]
        for start in range(0, len(metrics), BATCH):
            client.log_batch(run.info.run_id, metrics=metrics[start : start + BATCH])
        tags = [RunTag(key, value) for key, value in audit.tags.items()]
        client.log_batch(run.info.run_id, tags=tags[:MAX_TAGS])
        for path in audit.files:
            client.log_artifact(run.info.run_id, str(path))
        client.set_terminated(run.info.run_id)
    except (ImportError, MlflowException, OSError) as error:
        # A store in a database needs packages that mlflow-skinny does not bring.
        raise OutputError(
            f"the audit in {folder} is complete, but MLflow did not store it: {error}"
        ) from error
    return str(run.info.run_id)
