"""The portion of an experiment that is run: some of its audits, with other seeds."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

from overheard.auditing.folder import AuditFolder
from overheard.core.errors import OutputError, PlanError
from overheard.plans.plan import Plan, parse_plan
from overheard.report.evidence.digests import check_folder

NOT_SELECTED = "this audit was not selected"
"""Why an audit outside the portion has no values."""


@final
@dataclass(frozen=True, slots=True)
class Portion:
    """Which audits of an experiment to run, and with which seeds.

    Args:
        only: names of the audits to run; none = all.
        seeds: seeds that replace those of the experiment; none = its own.

    """

    only: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()

    def select(self, experiment: str, plans: Mapping[str, Plan]) -> dict[str, Plan]:
        """Return the selected plans with the seeds of this portion, in the order of all plans.

        Raises:
            PlanError: if a name is unknown; the message lists the known names.

        """
        for name in self.only:
            if name not in plans:
                raise PlanError(
                    f"{experiment} has no audit {name!r}; its audits: {', '.join(plans)}"
                )
        return {
            name: plan.model_copy(update={"seeds": self.seeds}) if self.seeds else plan
            for name, plan in plans.items()
            if not self.only or name in self.only
        }

    def add_finished(
        self, selected: Mapping[str, Plan], plans: Mapping[str, Plan], folder: Path
    ) -> dict[str, Plan]:
        """Return the selected plans, and those of audits that were finished in this folder.

        A finished audit keeps the seeds with which it was run. All are in the order of `plans`.

        Args:
            selected: from `select`.
            plans: all plans of the experiment, by sub-folder.
            folder: folder of the experiment.

        """
        found = {name: _finished_plan(plan, folder / name) for name, plan in plans.items()}
        both = {name: selected.get(name, found[name]) for name in plans}
        return {name: plan for name, plan in both.items() if plan is not None}


def _finished_plan(plan: Plan, folder: Path) -> Plan | None:
    """Return the plan with the seeds of a folder's finished audit; None = there is none."""
    text = AuditFolder(folder).plan_text()
    if text is None:
        return None
    try:
        # Interrupted while it continued with further seeds, its plan differs from the digest.
        is_finished = check_folder(folder).is_as_written
        stored = parse_plan(text, str(folder))
    except (OutputError, PlanError):
        return None
    same = plan.model_copy(update={"seeds": stored.seeds})
    return same if is_finished and same.toml() == stored.toml() else None


ALL = Portion()
"""The whole experiment."""
