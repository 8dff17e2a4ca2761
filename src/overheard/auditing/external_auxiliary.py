"""Auxiliary examples from a data set other than the audited one."""

import torch

from overheard.core.errors import PlanError
from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.core.task import OUTPUTS_OF
from overheard.data.apportion import apportion
from overheard.data.content_hash import content_hashes
from overheard.data.dataset import Dataset
from overheard.data.partition.data_partition import AuxiliarySize
from overheard.data.partition.stratified_sample import draw_stratified


def draw_external_auxiliary(
    source: Dataset, audited: Dataset, size: AuxiliarySize, seed: Seed, place: str
) -> Examples:
    """Draw auxiliary examples from another data set; skip those in the audited data.

    Args:
        source: the data set to draw from; its training part is used.
        audited: the audited data set; no example of its training or test part is drawn.
        size: how many examples.
        seed: the seed of the draw.
        place: where the plan names the source, for error messages.

    Raises:
        PlanError: if the two data sets have different tasks, or there are too few examples.

    """
    _check_same_task(source, audited, place)
    excluded = torch.cat(
        [content_hashes(part.inputs) for part in (audited.train, audited.test)]
    )
    pool = source.train
    free = pool.take(~torch.isin(content_hashes(pool.inputs), excluded))
    classes = audited.task.classes
    if size.per_class is not None:
        counts = torch.full((classes,), size.per_class)
    else:
        counts = apportion(pool.label_counts(classes).double(), size.total or 0)
    available = free.label_counts(classes)
    short = (counts > available).nonzero().flatten().tolist()
    if short:
        label = short[0]
        name = audited.task.class_names[label]
        raise PlanError(
            f"{place}: {int(counts[label])} examples with label {name!r} are needed, but the "
            f"data set has only {int(available[label])} that are not in the audited data: ask "
            "for fewer auxiliary examples, or name another data set"
        )
    (rows,) = draw_stratified(free.labels, counts[None], classes, seed)
    return free.take(rows)


def _check_same_task(source: Dataset, audited: Dataset, place: str) -> None:
    found, expected = source.task, audited.task
    forms = [(one.shape, one.outputs, one.kind, one.vocabulary) for one in (found, expected)]
    if forms[0] != forms[1]:
        raise PlanError(
            f"{place}: has examples of shape {found.shape}, {found.outputs} "
            f"{OUTPUTS_OF[found.kind]} and vocabulary {found.vocabulary}, but the audited data "
            f"have {expected.shape}, {expected.outputs} {OUTPUTS_OF[expected.kind]} and "
            f"{expected.vocabulary}: name a data set of the same form"
        )
