"""The default plan: real digits, ten clients, about a minute."""

from importlib.resources import files

from overheard.plans.plan import Plan, parse_plan


def built_in_plan() -> Plan:
    """Return the plan that `overheard audit` uses when none is given."""
    name = "built_in.toml"
    return parse_plan(files("overheard.plans").joinpath(name).read_text("utf-8"), name)
