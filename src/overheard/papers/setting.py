"""Says in words what a figure was measured on."""

from overheard.plans.part import label
from overheard.plans.plan import Plan


def setting(name: str, run: Plan, full: Plan, people: str = "clients") -> str:
    """What a figure was measured on, in words; of a reduced run also what was cut.

    Args:
        name: of the data set or scenario, as the paper has it.
        run: the plan that was run.
        full: the one that is run unless there is hurry.
        people: what the paper calls those who take part.

    """
    data, training = run.data, run.training
    cuts = [
        f"{here} of {whole} {what}"
        for what, here, whole in (
            ("seeds", len(run.seeds), len(full.seeds)),
            ("rounds", training.rounds, full.training.rounds),
            (people, data.clients, full.data.clients),
            (f"examples a {people[:-1]}", _sizes(run), _sizes(full)),
            (
                "auxiliary examples a class",
                data.auxiliary_per_class,
                full.data.auxiliary_per_class,
            ),
            ("auxiliary examples", data.auxiliary, full.data.auxiliary),
            ("virtual clients", _virtual(run), _virtual(full)),
        )
        if here != whole
    ]
    changes = [
        f"{label(here)} in place of {label(whole)}"
        for here, whole in (
            (data.source, full.data.source),
            (training.model, full.training.model),
            *zip(run.threats[0].attacks, full.threats[0].attacks, strict=True),
        )
        if here != whole
    ]
    if training.rate != full.training.rate:
        changes.append(f"rate {training.rate:g} in place of {full.training.rate:g}")
    told = ", ".join([*cuts, *changes])
    return (
        f"{name}, {data.clients} {people if data.clients > 1 else people[:-1]} of "
        f"{_sizes(run)} examples, "
        f"{_auxiliary(run)}, {training.rounds} rounds, "
        f"seeds {', '.join(str(seed) for seed in run.seeds)}"
        + (f" (quick: {told})" if told else "")
    )


def _sizes(plan: Plan) -> str:
    smallest, largest = plan.data.sizes
    return str(smallest) if smallest == largest else f"{smallest} to {largest}"


def _auxiliary(plan: Plan) -> str:
    if plan.data.auxiliary is not None:
        return f"{plan.data.auxiliary} auxiliary examples"
    return f"{plan.data.auxiliary_per_class} auxiliary examples a class"


def _virtual(plan: Plan) -> int:
    return plan.threats[0].virtual.clients
