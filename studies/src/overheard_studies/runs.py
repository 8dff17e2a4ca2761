"""The finished audits of a study and their plans."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import final

from overheard.archive.reader import open_transcript
from overheard.archive.run_digests import digest_of_run
from overheard.auditing.folder import AuditFolder
from overheard.auditing.inputs import Resources
from overheard.auditing.program import TRAINING_MODULES, training_plugins
from overheard.auditing.progress import OnStep, ProgressStep
from overheard.auditing.run_kinds import run_kinds
from overheard.core.transcript import Transcript
from overheard.disk.digests import mark_of_trust
from overheard.findings.audit import Audit
from overheard.plans.plan import Plan
from overheard.plans.source_code import code_digest


@final
@dataclass(frozen=True, slots=True)
class StudyRuns:
    """The finished audits of a study, each in its own sub-folder.

    Args:
        audits: results by sub-folder; audits whose data are missing are left out.
        plans: plans by sub-folder; with other seeds than the study's if those were
            requested. Audits of one folder may have different seeds.
        folder: folder of the study.
        resources: data folder, device and workers.
        on_step: told of measurements that take minutes after the audits; None = no reports.

    """

    audits: Mapping[str, Audit]
    plans: Mapping[str, Plan]
    folder: Path
    resources: Resources = field(default_factory=Resources)
    on_step: OnStep | None = None

    def report(self, what: str, done: int, total: int) -> None:
        """Report that `done` of `total` parts of a measurement are finished."""
        if self.on_step is not None:
            self.on_step(ProgressStep(what, done, total))

    def common_seeds(self, names: Collection[str]) -> tuple[int, ...]:
        """Return the seeds that all of these audits have, in the order of the first."""
        first, *others = (self.plans[name].seeds for name in names)
        return tuple(seed for seed in first if all(seed in one for one in others))

    def with_common_seeds(self, names: Collection[str]) -> "StudyRuns":
        """Return these runs, of the named audits only those of their common seeds."""
        seeds = self.common_seeds(names)
        plans = {name: self.plans[name].model_copy(update={"seeds": seeds}) for name in names}
        return replace(self, plans={**self.plans, **plans})

    def describe_origin(self, names: Sequence[str], module: str) -> str:
        """Return all that a module's results from these audits depend on.

        It names their plans, the code, and a digest of each run, which covers its messages and
        the data that it was made from.

        Raises:
            OutputError: if a run cannot be read.

        """
        origin = describe_origin([self.plans[name] for name in names], module)
        return "\n".join(
            [f"{origin}{mark_of_trust()}", *(f"# run {one}" for one in self._digests(names))]
        )

    def _digests(self, names: Sequence[str]) -> Iterator[str]:
        for name in names:
            plan, folder = self.plans[name], AuditFolder(self.folder / name)
            for arm, seed, kind in product(plan.arms, plan.seeds, run_kinds(plan)):
                yield digest_of_run(folder.run_path(arm.name, seed, kind.folder_suffix))

    def transcript(
        self, name: str, arm: str, seed: int, *, is_control: bool = False
    ) -> Transcript:
        """Open the transcript of one federation, or of its control run."""
        audit_folder = AuditFolder(self.folder / name)
        return open_transcript(
            audit_folder.run_path(arm, seed, "-control" if is_control else "")
        )


def describe_origin(plans: Sequence[Plan], module: str) -> str:
    """Return the plans and a digest of code: what a module's results from their runs depend on.

    Args:
        plans: the plans of the runs, with their seeds.
        module: dotted name of the module that computes the results.

    """
    plugins = (
        one for plan in plans for arm in plan.arms for one in training_plugins(plan, arm)
    )
    code = code_digest((module, *TRAINING_MODULES), plugins)
    return "\n".join([f"# code {code}", *(plan.toml() for plan in plans)])
