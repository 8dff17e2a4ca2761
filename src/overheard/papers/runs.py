"""The finished audits of an experiment and their plans."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from overheard.archive.reader import open_transcript
from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import Resources
from overheard.core.transcript import Transcript
from overheard.findings.finding import Audit
from overheard.plans.plan import Plan


@final
@dataclass(frozen=True, slots=True)
class ExperimentRuns:
    """The finished audits of an experiment, each in its own sub-folder.

    Args:
        audits: results by sub-folder; audits whose data are missing are left out.
        plans: plans by sub-folder; with other seeds than the experiment's if those were
            requested.
        folder: folder of the experiment.
        resources: data folder, device and workers.

    """

    audits: Mapping[str, Audit]
    plans: Mapping[str, Plan]
    folder: Path
    resources: Resources = field(default_factory=Resources)

    def transcript(
        self, name: str, arm: str, seed: int, *, is_control: bool = False
    ) -> Transcript:
        """Open the transcript of one federation, or of its control run."""
        audit_folder = AuditFolder(self.folder / name)
        return open_transcript(
            audit_folder.run_path(arm, seed, "-control" if is_control else "")
        )
