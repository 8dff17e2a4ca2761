"""Writing of an audit's report, as a page and as data files."""

from hashlib import sha256
from pathlib import Path

from overheard.archive.atomic import output_error, write_text
from overheard.auditing.threat_results import collect_arms
from overheard.core.seeds import Seed
from overheard.findings.finding import Audit
from overheard.findings.threat_results import ArmResult
from overheard.report.evidence.digests import write_digests
from overheard.report.exports import as_csv, as_json
from overheard.report.page import render_page

REPORT_FILES = ("findings.json", "findings.csv", "report.html", "plan.toml")
"""Files whose digests are written; the plan is there if `overheard audit` made the folder."""


DATA_FILES = ("findings.json", "findings.csv", "digests.json")
"""Files of a finished audit beside the report and the plan."""


def write_report(audit: Audit, folder: Path, seed: Seed) -> tuple[ArmResult, ...]:
    """Write `findings.json`, `findings.csv` and `report.html`, each completely or not at all.

    Last it writes `digests.json`, with which `overheard verify` finds later changes. The same
    audit and seed give the same bytes. Returns the results by arm that the files show.

    Args:
        audit: the results to report.
        folder: where to write; created if it does not exist.
        seed: the seed of the bootstrap, which gives the intervals.

    Raises:
        OutputError: if the folder cannot be written.

    """
    arm_results = collect_arms(audit, seed)
    findings = as_json(audit, arm_results)
    write_text(folder / "findings.json", findings)
    write_text(folder / "findings.csv", as_csv(audit))
    digest = sha256(findings.encode("utf-8")).hexdigest()
    write_text(folder / "report.html", render_page(audit, arm_results, digest))
    write_digests(folder, REPORT_FILES)
    return arm_results


def write_interim_report(audit: Audit, folder: Path, seed: Seed) -> None:
    """Write `report.html` alone, for an audit that goes on.

    Data files of an earlier audit are removed: they would not match the page, and nobody should
    judge a run by results that still change.

    Args:
        audit: the results so far.
        folder: where to write.
        seed: the seed of the bootstrap, which gives the intervals.

    Raises:
        OutputError: if the folder cannot be written.

    """
    for name in DATA_FILES:
        path = folder / name
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise output_error(path, error) from error
    write_text(folder / "report.html", render_page(audit, collect_arms(audit, seed)))
