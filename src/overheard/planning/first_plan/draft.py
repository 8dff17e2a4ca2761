"""Reads a first plan that is not finished as an audit would."""

from overheard.auditing.inputs import AuditInputs, Resources, load_inputs
from overheard.core.compute_settings import MemoryTensorCache
from overheard.planning.first_plan.plan_facts import PlanFacts
from overheard.planning.first_plan.plan_text import plan_text
from overheard.plans.plan import parse_plan

PLACE = "the first plan"
"""What errors of the text would name as their place."""


def load_draft(facts: PlanFacts, resources: Resources) -> AuditInputs:
    """Return the inputs of an audit by the plan of these facts.

    Raises:
        PlanError: if they are no plan.
        DataError: if the data cannot be read.

    """
    plan = parse_plan(plan_text(facts), PLACE)
    return load_inputs(plan, resources, MemoryTensorCache())
