"""A description of what a value was measured on."""

from collections.abc import Collection, Sequence

from overheard.plans.plan import Plan
from overheard.plans.plugin_field import plugin_label


def describe_setting(name: str, run: Plan, full: Plan, word: str = "clients") -> str:
    """Describe what a value was measured on, and how it differs from the full size.

    Args:
        name: name of the data set or scenario, as the paper has it.
        run: plan that was run.
        full: plan of a full run.
        word: the paper's word for the clients, in the plural.

    """
    data, training = run.data, run.training
    cuts = [
        f"{reduced} instead of {whole} {what}"
        for what, reduced, whole in (
            ("seeds", len(run.seeds), len(full.seeds)),
            ("rounds", training.rounds, full.training.rounds),
            (word, data.clients, full.data.clients),
            (f"examples per {word[:-1]}", _sizes(run), _sizes(full)),
            (
                "auxiliary examples per class",
                data.auxiliary_per_class,
                full.data.auxiliary_per_class,
            ),
            ("auxiliary examples", data.auxiliary, full.data.auxiliary),
            ("virtual clients", _virtual(run), _virtual(full)),
        )
        if reduced != whole
    ]
    changes = [
        f"{plugin_label(reduced)} instead of {plugin_label(whole)}"
        for reduced, whole in (
            (data.source, full.data.source),
            (training.model, full.training.model),
            *zip(run.threats[0].attacks, full.threats[0].attacks, strict=True),
        )
        if reduced != whole
    ]
    if training.rate != full.training.rate:
        changes.append(f"rate {training.rate:g} instead of {full.training.rate:g}")
    reductions = ", ".join([*cuts, *changes])
    return (
        f"{name}, {data.clients} {word if data.clients > 1 else word[:-1]} of "
        f"{_sizes(run)} examples, "
        f"{_auxiliary(run)}, {training.rounds} rounds, "
        f"seeds {', '.join(str(seed) for seed in run.seeds)}"
        + (f" (changed from the full size: {reductions})" if reductions else "")
    )


def describe_size(plans: Collection[Plan]) -> str:
    """Describe the smallest and the largest size of one or more audits."""
    return (
        f"{_count([plan.data.clients for plan in plans], 'client')} of "
        f"{_count([size for plan in plans for size in plan.data.sizes], 'example')}, "
        f"{_count([plan.training.rounds for plan in plans], 'round')}, "
        f"{_count([len(plan.seeds) for plan in plans], 'run')}"
    )


def _sizes(plan: Plan) -> str:
    return _range(plan.data.sizes)


def _count(numbers: Sequence[int], noun: str) -> str:
    return f"{_range(numbers)} {noun}{'' if max(numbers) == 1 else 's'}"


def _range(numbers: Sequence[int]) -> str:
    smallest, largest = min(numbers), max(numbers)
    return str(smallest) if smallest == largest else f"{smallest} to {largest}"


def _auxiliary(plan: Plan) -> str:
    if plan.data.auxiliary is not None:
        return f"{plan.data.auxiliary} auxiliary examples"
    return f"{plan.data.auxiliary_per_class} auxiliary examples per class"


def _virtual(plan: Plan) -> int:
    return plan.threats[0].virtual.clients
