"""What MLflow keeps of an audit, and logging it as one run."""

import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import final

from overheard.core.errors import OutputError
from overheard.findings.document import FindingsDocument, read_findings
from overheard.findings.document_rows import SummaryRow, VerdictRow
from overheard.findings.names import shorten

LOGGED_FILES = ("report.html", "findings.json", "findings.csv", "plan.toml", "digests.json")
"""Files of an audit that are logged; those that do not exist are left out."""

MAX_TAG = 500
"""Longest tag in characters; MLflow allows 5000."""

MAX_PART = 60
"""Longest part of a metric's name in characters; MLflow allows 250 for the whole."""

_UNUSUAL = re.compile(r"[^A-Za-z0-9_.\- ]")


@final
@dataclass(frozen=True, slots=True)
class LoggedAudit:
    """What is logged of an audit.

    Args:
        title: title of the audit.
        metrics: figures by name: question/arm/observers/about/figure. The figure is the name of
            the judged score, or guess, gain or p_value.
        tags: what was audited, the day, versions, counts of verdicts, and the digest of the
            findings.
        files: the report and its data.

    """

    title: str
    metrics: Mapping[str, float]
    tags: Mapping[str, str]
    files: tuple[Path, ...]


def read_logged_audit(folder: Path) -> LoggedAudit:
    """Return what to log of the audit in a folder.

    Raises:
        FindingsError: if the folder has no valid findings.

    """
    path = folder / "findings.json"
    found = read_findings(path)
    with path.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    files = tuple(folder / name for name in LOGGED_FILES if (folder / name).is_file())
    return LoggedAudit(
        shorten(found.title, MAX_TAG), _metrics(found), _tags(found, digest), files
    )


def _tags(found: FindingsDocument, digest: str) -> dict[str, str]:
    counts = Counter(row.verdict for row in found.verdicts)
    tags = {
        "subject": found.subject,
        "made_on": found.made_on,
        "findings_sha256": digest,
        **{f"version.{name}": value for name, value in found.versions.items()},
        **{f"verdicts.{name}": str(count) for name, count in counts.items()},
    }
    return {
        f"overheard.{_plain(name)}": shorten(value, MAX_TAG)
        for name, value in tags.items()
        if value
    }


def _metrics(found: FindingsDocument) -> dict[str, float]:
    metrics: dict[str, float] = {}
    for verdict in found.verdicts:
        figures = dict(_figures(verdict, _judged_row(verdict, found)))
        place = "/".join(
            map(
                _plain,
                (
                    verdict.question,
                    verdict.arm,
                    " and ".join(verdict.observers),
                    verdict.about,
                ),
            )
        )
        unique, number = place, 1
        while any(f"{unique}/{name}" in metrics for name in figures):
            number += 1
            unique = f"{place}-{number}"
        metrics |= {f"{unique}/{name}": value for name, value in figures.items()}
    return metrics


def _figures(verdict: VerdictRow, row: SummaryRow | None) -> Iterator[tuple[str, float]]:
    """Yield the figures of a verdict that are known."""
    known = {
        "gain": None if verdict.gain is None else verdict.gain.mean,
        "p_value": verdict.p_value,
    }
    if row is not None:
        known[_plain(row.score)] = row.value.mean
        known["guess"] = row.best_guess
    for name, value in known.items():
        if value is not None:
            yield name, value


def _judged_row(verdict: VerdictRow, found: FindingsDocument) -> SummaryRow | None:
    """Return the row of the judged score and attack over the most rounds; None = none."""
    rows = [
        row
        for row in found.summary
        if (row.arm, row.question, row.about) == (verdict.arm, verdict.question, verdict.about)
        and set(row.observers) == set(verdict.observers)
        and (row.attack, row.score) == (verdict.attack, verdict.score)
    ]
    return max(rows, key=lambda row: len(row.rounds), default=None)


def _plain(text: str) -> str:
    """Return the text as a part of a metric's name that MLflow accepts."""
    return _UNUSUAL.sub("_", text)[:MAX_PART].strip(" .") or "_"


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
