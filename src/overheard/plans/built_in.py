"""The default plan: real digits, ten clients, about 20 seconds on two cores."""

from importlib.resources import files
from pathlib import Path

from overheard.plans.plan import Plan, parse_plan, read_plan


def built_in_plan() -> Plan:
    """Return the plan that `overheard audit` uses when none is given."""
    name = "built_in.toml"
    return parse_plan(files("overheard.plans").joinpath(name).read_text("utf-8"), name)


def read_plan_or_built_in(path: Path | None, seed: int | None = None) -> Plan:
    """Read a plan, or the built-in one without a path; a seed replaces the plan's seeds.

    Raises:
        PlanError: if the file cannot be read or is no plan.

    """
    plan = built_in_plan() if path is None else read_plan(path)
    return plan if seed is None else plan.model_copy(update={"seeds": (seed,)})
