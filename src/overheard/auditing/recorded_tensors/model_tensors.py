"""The tensors of a recording that are the plan's model, and the check that they are."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import final

import torch
from torch import Tensor, nn

from overheard.archive.excerpt import printable_excerpt
from overheard.archive.tensor_records import group_by_record
from overheard.archive.weights import Shapes, tensor_shapes
from overheard.auditing.recorded_tensors.network_tensors import Axes, network_tensors
from overheard.auditing.recorded_tensors.tensor_match import TensorMatch, TensorMismatch
from overheard.auditing.recorded_tensors.tensor_matching import match_tensors
from overheard.core.errors import PlanError
from overheard.core.messages import Aggregate, Broadcast, Message, Update, Weights
from overheard.core.transcript import Transcript

DEFAULT_RECORD = "arrays"
"""The name under which Flower's strategies send the model."""


def select_matched_tensors(whole: Transcript, match: TensorMatch) -> Transcript:
    """Return all messages with the matched tensors alone; no tensor is read."""
    messages = (select_tensors(one, match.names, match.axes) for one in whole.messages)
    return Transcript(tuple(messages))


def match_model_tensors(
    recording: Path,
    whole: Transcript,
    network: nn.Module,
    recorded: str,
    record: str | None,
    at_home: Collection[str] = (),
    left_out: Collection[str] = (),
) -> TensorMatch:
    """Find the tensors that the model sends in a recording.

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
        left_out: names of tensors that were sent and not recorded.

    Raises:
        PlanError: if the broadcasts do not hold the model, or two records could be it, or two
            tensors that the network has once differ.

    """
    replies = [
        tensor_shapes(m.body.delta) for m in whole.messages if isinstance(m.body, Update)
    ]
    sent = [
        tensor_shapes(m.body.weights) for m in whole.messages if isinstance(m.body, Broadcast)
    ]
    shapes = common_shapes(sent)
    if at_home:
        kept = never_sent(whole)
        shapes = {name: one for name, one in shapes.items() if name not in kept}
    answered = common_shapes([shapes, *replies])
    found = match_records(
        shapes, answered, network, record, at_home=at_home, left_out=left_out, stated=recorded
    )
    if isinstance(found, TensorMismatch):
        raise PlanError(f"{recording}: {found.reason}")
    if any(name not in one for one in replies for name in found.names.values()):
        chosen = next(iter(found.names.values())).partition("/")[0]
        raise PlanError(
            f"{recording}: some updates do not have the record {printable_excerpt(chosen)!r}. "
            "Set training.record of the plan to one that both broadcasts and updates have: "
            f"{', '.join(sorted(group_by_record(answered).keys() - {''})) or 'there is none'}"
        )
    _check_copies(recording, whole, found)
    return found


def never_sent(whole: Transcript) -> frozenset[str]:
    """Return the names of broadcast tensors that no client sends back."""
    absent = [frozenset(m.body.absent) for m in whole.messages if isinstance(m.body, Update)]
    return frozenset.intersection(*absent) if absent else frozenset()


def common_shapes(messages: Sequence[Shapes]) -> Shapes:
    """Return the shapes of the tensors that all messages have, in the order of the first."""
    if not messages:
        return {}
    first, *others = messages
    return {
        name: shape
        for name, shape in first.items()
        if all(other.get(name) == shape for other in others)
    }


def match_records(
    shapes: Shapes,
    answered: Collection[str],
    network: nn.Module,
    record: str | None = None,
    *,
    at_home: Collection[str] = (),
    left_out: Collection[str] = (),
    stated: str = "",
) -> TensorMatch | TensorMismatch:
    """Match a network with the record that is the model, or with all tensors.

    Of records that fit, those that updates have too come first, as clients change the model.

    Args:
        shapes: the shapes of the tensors that all broadcasts have.
        answered: names of those that updates have too.
        network: the plan's model.
        record: the record that is the model, if the plan names it.
        at_home: names of tensors that stay with each client.
        left_out: names of tensors that were sent and not recorded.
        stated: what the recording states about its model.

    Returns:
        The match, or what differs from the record that has most of the model.

    """
    tensors, records = network_tensors(network, at_home), _split(shapes)
    absent = _split(dict.fromkeys(left_out, ()))
    # Names with slashes may be those of layers, so that all tensors may be the model.
    candidates = (
        [("", shapes), *records.items()]
        if record is None
        else [(f"{record}/", records.get(f"{record}/", {}))]
    )
    found = dict[str, TensorMatch | TensorMismatch]()
    for prefix, part in candidates:
        if not isinstance(found.get(prefix), TensorMatch):
            names = left_out if part is shapes else absent.get(prefix, {})
            found[prefix] = match_tensors(part, tensors, left_out=names, stated=stated)
    fitting = {
        prefix: one.in_record(prefix)
        for prefix, one in found.items()
        if isinstance(one, TensorMatch)
    }
    if not fitting:
        mismatches = [one for one in found.values() if isinstance(one, TensorMismatch)]
        return max(mismatches, key=lambda one: one.common)
    common = {prefix for prefix in fitting if any(one.startswith(prefix) for one in answered)}
    fitting = {prefix: one for prefix, one in fitting.items() if prefix in common} or fitting
    if "" in fitting or len(fitting) == 1:
        return fitting.get("") or next(iter(fitting.values()))
    if f"{DEFAULT_RECORD}/" in fitting:
        return fitting[f"{DEFAULT_RECORD}/"]
    names = ", ".join(printable_excerpt(one.removesuffix("/")) for one in sorted(fitting))
    return TensorMismatch(
        f"several records have the tensors of the model: {names}. Set training.record of the "
        "plan to the one that is the model"
    )


def _split(shapes: Shapes) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return the tensors of each record, by its name with a slash; "" = those of none."""
    records = dict[str, dict[str, tuple[int, ...]]]()
    for name, shape in shapes.items():
        record, slash, tensor = name.partition("/")
        prefix = record + slash if slash else ""
        records.setdefault(prefix, {})[tensor if slash else name] = shape
    return records


def _check_copies(recording: Path, whole: Transcript, match: TensorMatch) -> None:
    """Refuse two tensors with other numbers that are one tensor of the network.

    The first messages of both kinds and the last broadcast are read, as reading all takes long.
    """
    if not match.copies:
        return
    sent = [m.body.weights for m in whole.messages if isinstance(m.body, Broadcast)]
    changes = [m.body.delta for m in whole.messages if isinstance(m.body, Update | Aggregate)]
    read: list[Weights] = [*sent[:1], *changes[:1], *sent[-1:]]
    for one, other in match.copies:
        if not all(torch.equal(weights[one], weights[other]) for weights in read):
            raise PlanError(
                f"{recording}: {printable_excerpt(one)} and {printable_excerpt(other)} differ, "
                "and are one tensor of the plan's training.model, which two of its layers "
                "share: give each layer a tensor of its own in the network"
            )


AS_RECORDED: Mapping[str, Axes] = MappingProxyType({})


def select_tensors(
    message: Message, names: Mapping[str, str], axes: Mapping[str, Axes] = AS_RECORDED
) -> Message:
    """Return the message with only these tensors of its weights, in this order.

    No tensor is read. A message with exactly these tensors is returned unchanged.

    Args:
        message: the message.
        names: by the name of each tensor in the result, its name in the message.
        axes: by the name in the result, the new order of the axes of a tensor.

    """
    return _change_weights(message, lambda weights: _select(weights, names, axes))


def _change_weights(message: Message, change: Callable[[Weights], Weights]) -> Message:
    body = message.body
    match body:
        case Broadcast():
            control = None if body.control is None else change(body.control)
            weights = change(body.weights)
            return replace(message, body=replace(body, weights=weights, control=control))
        case Update():
            control = None if body.control is None else change(body.control)
            return replace(
                message, body=replace(body, delta=change(body.delta), control=control)
            )
        case Aggregate():
            return replace(message, body=replace(body, delta=change(body.delta)))
        case _:
            return message


def _select(weights: Weights, names: Mapping[str, str], axes: Mapping[str, Axes]) -> Weights:
    is_same = not axes and tuple(weights) == tuple(names) == tuple(names.values())
    return weights if is_same else _SelectedTensors(weights, names, axes)


@final
@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class _SelectedTensors(Mapping[str, Tensor]):
    """Some tensors of a model, each read on access."""

    weights: Weights
    names: Mapping[str, str]
    axes: Mapping[str, Axes]

    def __getitem__(self, name: str) -> Tensor:
        tensor = self.weights[self.names[name]]
        return tensor.permute(self.axes[name]).contiguous() if name in self.axes else tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)
