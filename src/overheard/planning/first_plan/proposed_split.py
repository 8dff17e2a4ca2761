"""Proposes how many examples attackers, clients and candidate records get."""

from dataclasses import replace

import torch

from overheard.auditing.inputs import Resources
from overheard.core.errors import PlanError
from overheard.data.dataset import Dataset
from overheard.data.datasets.no_examples import NoExamples
from overheard.planning.first_plan.draft import load_draft
from overheard.planning.first_plan.plan_facts import PlanFacts
from overheard.planning.first_plan.request import FirstPlanRequest

AUXILIARY_SIZES = (20, 10, 5, 2, 1)
"""Auxiliary examples per class, in the order in which they are tried."""

EXAMPLES_WITHOUT_CLASSES = 20
"""By how much more auxiliary examples there are if there are no classes to count them by."""

MEMBERS, OUTSIDERS = 5, 50
"""Candidate records of each client, and of nobody."""

CLIENTS = 10
"""Clients of a simulated federation."""


def with_fitting_sizes(
    facts: PlanFacts, dataset: Dataset, request: FirstPlanRequest, resources: Resources
) -> PlanFacts:
    """Choose the numbers of auxiliary examples, and of clients' examples in a simulation."""
    if isinstance(facts.source, NoExamples):
        return facts
    problem = ""
    for per_class in AUXILIARY_SIZES:
        more = 1 if facts.has_classes else EXAMPLES_WITHOUT_CLASSES
        tried = replace(facts, auxiliary_per_class=more * per_class)
        if request.recording is None:
            tried = _with_clients(tried, dataset)
        try:
            audit_inputs = load_draft(tried, resources)
            for seed in audit_inputs.plan.seeds:
                audit_inputs.partition(seed)
        except PlanError as error:
            problem = str(error)
            continue
        return tried
    raise PlanError(f"the data are too few for a plan: {problem}")


def _with_clients(facts: PlanFacts, dataset: Dataset) -> PlanFacts:
    """Choose the split, the number of clients and their sizes by the size of the data."""
    auxiliary = (facts.auxiliary_per_class or 0) * dataset.task.classes
    free = len(dataset.train) - auxiliary
    if not facts.has_classes:
        facts = replace(facts, candidates=(MEMBERS, OUTSIDERS))
        free -= OUTSIDERS
    if dataset.users is not None:
        users = int(torch.unique(dataset.users).numel())
        clients = min(CLIENTS, max(2, users * 2 // 3))
        return replace(facts, clients=clients, sizes=(1, max(2, free)), split='"by_user"')
    largest = max(2, min(1000, free // (2 * CLIENTS)))
    sizes = (max(1, largest // 2), largest)
    split = '{ kind = "dirichlet", alpha = 0.5 }' if facts.has_classes else '"iid"'
    return replace(facts, sizes=sizes, split=split)
