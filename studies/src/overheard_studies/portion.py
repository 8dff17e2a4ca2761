"""The portion of an experiment that is run: some of its audits, with other seeds."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from overheard.auditing.folder import AuditFolder
from overheard.core.errors import FindingsError, OutputError, PlanError
from overheard.findings.document import read_findings
from overheard.plans.plan import Plan, parse_plan
from overheard.report.evidence.digests import FINDINGS_FILE, check_folder

NOT_SELECTED = "this audit was not selected"
"""Why an audit outside the portion has no values."""

ARM_NOT_SELECTED = "this arm was not selected"
"""Why an arm outside the portion has no values."""


@final
@dataclass(frozen=True, slots=True)
class Portion:
    """Which audits and arms of an experiment to run, and with which seeds.

    Args:
        only: names of the audits to run; none = all.
        seeds: seeds that replace those of the experiment; none = its own.
        arms: names of the arms to run; none = all. The arm without defenses is always run.

    """

    only: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    arms: tuple[str, ...] = ()

    def without(self, names: Iterable[str]) -> "Portion | None":
        """Return the portion without these audits; None if it selects nothing else."""
        if not self.only:
            return self
        others = set(self.only) - set(names)
        left = tuple(one for one in self.only if one in others)
        return replace(self, only=left) if left else None

    def select(
        self, experiment: str, plans: Mapping[str, Plan], measurements: Iterable[str] = ()
    ) -> dict[str, Plan]:
        """Return the selected plans with the seeds and arms of this portion.

        They are in the order of all plans. A plan that has none of the arms is left out.

        Args:
            experiment: the experiment's name, for messages.
            plans: all plans of the experiment, by sub-folder.
            measurements: what it measures without an audit, for messages.

        Raises:
            PlanError: if a name is unknown; the message lists the known names.

        """
        for name in self.only:
            if name not in plans:
                known = ", ".join((*plans, *measurements))
                what = "audit" if plans else "measurement"
                raise PlanError(f"{experiment} has no {what} {name!r}; choose among {known}")
        selected = {
            name: plan.model_copy(update={"seeds": self.seeds}) if self.seeds else plan
            for name, plan in plans.items()
            if not self.only or name in self.only
        }
        if not self.arms:
            return selected
        arms = dict.fromkeys(arm.name for plan in selected.values() for arm in plan.arms)
        for name in self.arms:
            if name not in arms:
                among = f" among the audits {', '.join(self.only)}" if self.only else ""
                raise PlanError(
                    f"{experiment}{among} has no arm {name!r}; its arms: {', '.join(arms)}"
                )
        return {
            name: _with_arms(plan, self.arms)
            for name, plan in selected.items()
            if any(arm.name in self.arms for arm in plan.arms)
        }

    def add_finished(
        self, selected: Mapping[str, Plan], plans: Mapping[str, Plan], folder: Path
    ) -> dict[str, Plan]:
        """Return the selected plans, and those of audits that were finished in this folder.

        A finished audit keeps the seeds and arms with which it was run. A selected one keeps
        the arms of which its folder has findings. All are in the order of `plans`.

        Args:
            selected: from `select`.
            plans: all plans of the experiment, by sub-folder.
            folder: folder of the experiment.

        """
        both = {
            name: _keep_arms(selected[name], plan, folder / name)
            if name in selected
            else _finished_plan(plan, folder / name)
            for name, plan in plans.items()
        }
        return {name: plan for name, plan in both.items() if plan is not None}


def _with_arms(plan: Plan, names: Collection[str]) -> Plan:
    """Return the plan with the arm without defenses, and the named ones."""
    arms = tuple(arm for arm in plan.arms if arm.is_reference or arm.name in names)
    return plan.model_copy(update={"arms": arms})


def _keep_arms(selected: Plan, plan: Plan, folder: Path) -> Plan:
    """Return a selected plan with the arms of the whole plan that a folder has findings of."""
    if selected.arms == plan.arms or _stored_plan(plan, folder) is None:
        return selected
    try:
        # Of an audit that was interrupted since, the findings are those of its earlier arms.
        found = read_findings(folder / FINDINGS_FILE).arm_names
    except FindingsError:
        return selected
    names = {*found, *(arm.name for arm in selected.arms)}
    return selected.model_copy(update={"arms": _with_arms(plan, names).arms})


def _finished_plan(plan: Plan, folder: Path) -> Plan | None:
    """Return the plan with the seeds and arms of a folder's finished audit.

    None is returned if there is none.
    """
    stored = _stored_plan(plan, folder)
    try:
        # Interrupted while it continued with further seeds, its plan differs from the digest.
        is_finished = stored is not None and check_folder(folder).is_as_written
    except OutputError:
        return None
    return stored if is_finished else None


def _stored_plan(plan: Plan, folder: Path) -> Plan | None:
    """Return the plan with the seeds and arms of a folder's audit, finished or not.

    None is returned if the folder has no audit of this plan.
    """
    text = AuditFolder(folder).plan_text()
    if text is None:
        return None
    try:
        stored = parse_plan(text, str(folder))
    except PlanError:
        return None
    arms = _with_arms(plan, {arm.name for arm in stored.arms}).arms
    same = plan.model_copy(update={"seeds": stored.seeds, "arms": arms})
    return same if same.toml() == stored.toml() else None


ALL = Portion()
"""The whole experiment."""
