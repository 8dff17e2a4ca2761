"""The tensors of a recording that are the plan's model, and the check that they are."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from torch import nn

from overheard.archive.tensor_records import group_by_record
from overheard.archive.weights import Shapes, tensor_shapes
from overheard.auditing.recorded_tensors.tensor_selection import select_tensors
from overheard.core.errors import PlanError
from overheard.core.messages import Broadcast, Update
from overheard.core.transcript import Transcript
from overheard.learning.sent_tensors import sent_buffers, sent_shapes

DEFAULT_RECORD = "arrays"
"""The name under which Flower's strategies send the model."""

MOST_NAMES = 4
"""The most tensors that an error names."""


def select_model_tensors(
    recording: Path,
    whole: Transcript,
    network: nn.Module,
    recorded: str,
    record: str | None,
    at_home: Collection[str] = (),
) -> Transcript:
    """Select the tensors that the model sends from all messages.

    Clients that send all of a `state_dict` send buffers too, others their parameters alone; so
    buffers are selected if the run sent them. A run that sends several records, such as a
    model and control variates, has tensors named `record/tensor`. The model is the record with
    its names and shapes; the others count as traffic only. Updates may lack other records.

    Args:
        recording: the folder of the recording, for errors.
        whole: all messages.
        network: the plan's model.
        recorded: what the recording states about its model.
        record: the record that is the model, if the plan names it.
        at_home: names of tensors that stay with each client.

    Raises:
        PlanError: if the broadcasts do not hold the model, or two records could be it.

    """
    sent = [
        tensor_shapes(m.body.weights) for m in whole.messages if isinstance(m.body, Broadcast)
    ]
    replies = [
        tensor_shapes(m.body.delta) for m in whole.messages if isinstance(m.body, Update)
    ]
    prefix = _find_prefix(recording, sent, replies, network, record, at_home)
    planned = _planned_shapes(network, sent, prefix, at_home)
    for shapes in sent:
        _check_shapes(recording, shapes, planned, prefix, recorded)
    if any(prefix + name not in shapes for shapes in replies for name in planned):
        raise PlanError(
            f"{recording}: some updates do not have the record {prefix.removesuffix('/')!r}. "
            "Set training.record of the plan to one that both broadcasts and updates have: "
            f"{', '.join(_common_records(sent, replies)) or 'there is none'}"
        )
    names = {name: prefix + name for name in planned}
    return Transcript(tuple(select_tensors(message, names) for message in whole.messages))


def _find_prefix(
    recording: Path,
    sent: Sequence[Shapes],
    replies: Sequence[Shapes],
    network: nn.Module,
    record: str | None,
    at_home: Collection[str],
) -> str:
    """Return what the names of the model's tensors begin with; empty for a single record.

    Of records that fit, those that updates have too come first, as clients change the model.
    """
    if record is not None:
        return f"{record}/"
    records = {name.partition("/")[0] for shapes in sent for name in shapes if "/" in name}
    prefixes = ["", *(f"{one}/" for one in sorted(records))]
    fitting = [
        prefix
        for prefix in prefixes
        if all(
            not _differences(one, _planned_shapes(network, sent, prefix, at_home), prefix)
            for one in sent
        )
    ]
    answered = {f"{one}/" for one in _common_records(sent, replies)}
    fitting = [one for one in fitting if one in answered or not one] or fitting
    if len(fitting) > 1 and f"{DEFAULT_RECORD}/" in fitting:
        return f"{DEFAULT_RECORD}/"
    if len(fitting) > 1 and "" not in fitting:
        raise PlanError(
            f"{recording}: several records have the tensors of the model: "
            f"{', '.join(one.removesuffix('/') for one in fitting)}. Set training.record of "
            "the plan to the one that is the model"
        )
    return fitting[0] if fitting else ""


def _common_records(sent: Sequence[Shapes], replies: Sequence[Shapes]) -> list[str]:
    """Return the records, in order, that all broadcasts and all updates have."""
    records = [set(group_by_record(shapes)) for shapes in (*sent, *replies)]
    return sorted(set.intersection(*records) - {""}) if records else []


def _planned_shapes(
    network: nn.Module, sent: Sequence[Shapes], prefix: str, at_home: Collection[str]
) -> Shapes:
    """Return the tensors that the run should have sent: buffers only if it sent them."""
    absent = {
        *at_home,
        *(
            name
            for name in sent_buffers(network)
            if any(prefix + name not in shapes for shapes in sent)
        ),
    }
    return {n: shape for n, shape in sent_shapes(network).items() if n not in absent}


def _check_shapes(
    recording: Path, sent: Shapes, planned: Shapes, prefix: str, recorded: str
) -> None:
    differing = _differences(sent, planned, prefix)
    if differing:
        raise PlanError(
            f"{recording}: {'; '.join(differing[:MOST_NAMES])}"
            f"{_more(len(differing) - MOST_NAMES)}. It broadcasts {_listed(sent)}, and the "
            f"plan's training.model has {_listed(planned)}: set training.model to the model of "
            f"the run, {recorded or 'which the recording does not state'}. What the run did "
            "not send, such as the base of adapters, must have requires_grad = False"
        )


def _differences(sent: Shapes, planned: Shapes, prefix: str) -> list[str]:
    """Name the planned tensors that were not sent, or were sent with another shape."""
    return [
        f"{prefix}{name} is {_shape(sent.get(prefix + name))} in the recording and "
        f"{_shape(shape)} in the plan"
        for name, shape in planned.items()
        if sent.get(prefix + name) != shape
    ]


def _shape(shape: tuple[int, ...] | None) -> str:
    return "missing" if shape is None else "x".join(map(str, shape)) or "scalar"


def _listed(shapes: Mapping[str, tuple[int, ...]]) -> str:
    names = list(shapes)
    return ", ".join(names[:MOST_NAMES]) + _more(len(names) - MOST_NAMES)


def _more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""
