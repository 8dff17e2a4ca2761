"""Auxiliary examples that do not come from the audited data."""

import torch

from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.data.apportion import apportion
from overheard.data.contents import content_keys
from overheard.data.dataset import Dataset
from overheard.data.partition.deal import Auxiliary
from overheard.data.partition.draw import draw


def drawn_from(
    elsewhere: Dataset, audited: Dataset, wanted: Auxiliary, seed: Seed, place: str
) -> Examples:
    """Auxiliary examples out of another data set, none of which the audited one holds.

    Args:
        elsewhere: where they are drawn from; its training part.
        audited: whose clients and test must not be given away.
        wanted: how many.
        seed: which.
        place: in the plan, for the message.

    Raises:
        PlanError: if the two are not about the same task, or there are too few examples.

    """
    _refuse_other_task(elsewhere, audited, place)
    taken = torch.cat([content_keys(part.inputs) for part in (audited.train, audited.test)])
    pool = elsewhere.train
    free = pool.take(~torch.isin(content_keys(pool.inputs), taken))
    classes = audited.task.classes
    if wanted.per_class is not None:
        counts = torch.full((classes,), wanted.per_class)
    else:
        counts = apportion(pool.counts(classes).double(), wanted.total or 0)
    there = free.counts(classes)
    short = (counts > there).nonzero().flatten().tolist()
    if short:
        label = short[0]
        raise PlanError(
            f"{place}: {int(counts[label])} examples with label {label} are needed, and "
            f"{int(there[label])} are there that the audited data do not hold: ask for fewer "
            "auxiliary examples, or name another data set"
        )
    (rows,) = draw(free.labels, counts[None], classes, seed)
    return free.take(rows)


def _refuse_other_task(elsewhere: Dataset, audited: Dataset, place: str) -> None:
    there, here = elsewhere.task, audited.task
    if (there.shape, there.classes, there.vocabulary) != (
        here.shape,
        here.classes,
        here.vocabulary,
    ):
        raise PlanError(
            f"{place}: has examples of shape {there.shape}, {there.classes} classes and the "
            f"vocabulary {there.vocabulary}; the audited data {here.shape}, {here.classes} and "
            f"{here.vocabulary}: name a data set of the same form"
        )
