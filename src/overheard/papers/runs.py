"""What an experiment has run: audits, by the plans that they carried out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from overheard.archive.reader import open_transcript
from overheard.auditing.folder import AuditFolder
from overheard.auditing.supplies import Resources
from overheard.core.transcript import Transcript
from overheard.findings.finding import Audit
from overheard.plans.plan import Plan


@final
@dataclass(frozen=True, slots=True)
class Runs:
    """The audits of an experiment, each in a sub-folder of its own.

    Args:
        audits: what was found, by sub-folder; those whose data are missing are left out.
        plans: what was run there; the experiment's own, with other seeds where those were
            asked for.
        folder: the experiment's.
        resources: where the data lie and what the work was done on.

    """

    audits: Mapping[str, Audit]
    plans: Mapping[str, Plan]
    folder: Path
    resources: Resources = field(default_factory=Resources)

    def transcript(
        self, name: str, arm: str, seed: int, *, is_control: bool = False
    ) -> Transcript:
        """What was said in one of the federations, or in its control."""
        home = AuditFolder(self.folder / name)
        return open_transcript(home.run(arm, seed, is_control=is_control))
