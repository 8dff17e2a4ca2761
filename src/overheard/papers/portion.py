"""The portion of an experiment that is run: some of its audits, with other seeds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from overheard.core.errors import PlanError
from overheard.plans.plan import Plan

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


ALL = Portion()
"""The whole experiment."""
