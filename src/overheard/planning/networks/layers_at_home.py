"""Recognises layers that clients keep at home, by what a recording lacks of a network."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from glob import escape
from itertools import takewhile
from typing import final

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from overheard.algorithms.fed_bn import FedBn
from overheard.algorithms.partial_sharing import PartialSharing
from overheard.archive.tensor_records import group_by_record
from overheard.archive.weights import Shapes
from overheard.auditing.recorded_tensors.model_tensors import match_records
from overheard.auditing.recorded_tensors.network_tensors import NetworkTensors, network_tensors
from overheard.auditing.recorded_tensors.tensor_differences import listed
from overheard.auditing.recorded_tensors.tensor_match import TensorMatch
from overheard.auditing.recorded_tensors.tensor_matching import sort_positions
from overheard.core.algorithm.algorithm import Algorithm, MeanKind
from overheard.learning.custom_networks.tensor_names import plain_name

NORMS = (_BatchNorm, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)
"""Layers that normalise, which clients may keep to follow their own data."""

MOST_PREFIXES = 1000
"""The most parts of a network to which the names of a recording are compared."""


@final
@dataclass(frozen=True, slots=True)
class LayersAtHome:
    """The layers of a network that a recording lacks, and what that means.

    Args:
        algorithm: the algorithm under which they stay with each client.
        missing: the first of their tensors with their shapes, and how many there are more.
        usual: the usual name of such a federation, such as "FedBN"; "" = they are no layers
            that clients usually keep, such as the first ones, which may as well be frozen.
        has_head: whether the last linear layer is among them.
        outputs: the number of outputs of the last linear layer.

    """

    algorithm: Algorithm
    missing: str
    usual: str
    has_head: bool
    outputs: int

    @property
    def sentence(self) -> str:
        """What was recognised, as a sentence without a full stop."""
        kept = (
            f"No message has {self.missing} of the network, so each client keeps them: "
            f"taken for {self.usual}"
        )
        if not self.has_head:
            return kept
        return (
            f"{kept}. Attacks that read the last layer cannot run, as nobody but its client "
            "has it, so membership of records and their source are not asked. Label shares are "
            "asked of the other layers, with labelled examples that no client holds"
        )


def find_layers_at_home(
    network: nn.Module, recorded: Shapes, mean: MeanKind = "examples"
) -> LayersAtHome | None:
    """Return the layers that clients keep, if the others are just the recorded tensors.

    Names are compared first. A recording may have lost the name of the part of the network
    that was sent, such as "body." in front of all names. Tensors without names are compared by
    their order and shapes: batch norms or the last layers may be missing. None = nothing is
    missing, the recording has other tensors, or more than one way fits.

    Args:
        network: the network of a client.
        recorded: the shapes of the tensors that the run sent, by name.
        mean: how the server weights updates.

    """
    tensors = network_tensors(network)
    found = set[Algorithm]()
    for part in _records(recorded):
        for missing in _missing_tensors(part, tensors):
            found.add(_algorithm(network, tensors, missing, mean))
        if places := sort_positions(part):
            found.add(FedBn(mean))
            for missing in _missing_ends(len(places), tensors):
                found.add(_algorithm(network, tensors, missing, mean))
    home = {one: frozenset(one.local_tensors(network) & tensors.shapes.keys()) for one in found}
    fitting = [one for one, names in home.items() if _fits(network, recorded, names)]
    if len({home[one] for one in fitting}) != 1:
        return None
    return _describe(network, tensors, fitting[0], home[fitting[0]])


def _records(recorded: Shapes) -> Iterator[Shapes]:
    """Yield all tensors, and those of each record without its name."""
    yield recorded
    for record, names in group_by_record(recorded).items():
        if record:
            yield {name: recorded[f"{record}/{name}"] for name in sorted(names)}


def _missing_tensors(recorded: Shapes, tensors: NetworkTensors) -> set[frozenset[str]]:
    """Return the sets of tensors that a recording may lack, one for each way to read names."""
    ours = {
        plain_name(name): sent for name, sent in tensors.names.items() if sent in tensors.shapes
    }
    theirs = {plain_name(name): shape for name, shape in recorded.items()}
    found = set[frozenset[str]]()
    for names in _without_shared_parts(theirs):
        for prefix in _prefixes(ours):
            there = {ours.get(f"{prefix}{name}"): shape for name, shape in names.items()}
            if any(name is None or tensors.shapes[name] != there[name] for name in there):
                continue
            missing = frozenset(name for name in tensors.parameters if name not in there)
            if missing:
                found.add(missing)
    return found


def _missing_ends(count: int, tensors: NetworkTensors) -> set[frozenset[str]]:
    """Return the parameters that lists of the network's first tensors lack."""
    ends = {
        frozenset(tensors.parameters).difference(tensors.names.get(one, "") for one in order)
        for order in (one[:count] for one in tensors.orders)
    }
    return ends - {frozenset[str]()}


def _without_shared_parts(names: Shapes) -> Iterator[dict[str, tuple[int, ...]]]:
    """Yield names without none, one, ... of the first parts that all of them share."""
    columns = zip(*(name.split(".")[:-1] for name in names), strict=False)
    shared = len(list(takewhile(lambda column: len(set(column)) == 1, columns)))
    for count in range(shared + 1):
        yield {".".join(name.split(".")[count:]): shape for name, shape in names.items()}


def _prefixes(names: Collection[str]) -> list[str]:
    """Return the names of the parts of a network, each with a dot; "" = the whole."""
    parts = {
        ".".join(name.split(".")[:count]) + "."
        for name in names
        for count in range(1, name.count(".") + 1)
    }
    return ["", *sorted(parts, key=lambda one: (one.count("."), one))][:MOST_PREFIXES]


def _fits(network: nn.Module, recorded: Shapes, at_home: Collection[str]) -> bool:
    """Return whether the network without these tensors is that of a recording."""
    if not at_home or len(at_home) == len(network_tensors(network).shapes):
        return False
    match = match_records(recorded, recorded, network, at_home=at_home)
    return isinstance(match, TensorMatch)


def _algorithm(
    network: nn.Module, tensors: NetworkTensors, missing: frozenset[str], mean: MeanKind
) -> Algorithm:
    """Return the algorithm that keeps these parameters, by its usual name if it has one."""
    exact = PartialSharing(tuple(_patterns("", tensors, missing)), mean)
    home = exact.local_tensors(network) & tensors.shapes.keys()
    for usual in (FedBn(mean), PartialSharing(mean=mean)):
        if usual.local_tensors(network) & tensors.shapes.keys() == home:
            return usual
    return exact


def _patterns(prefix: str, tensors: NetworkTensors, missing: frozenset[str]) -> Iterator[str]:
    """Yield patterns of the names of missing parameters, whole layers in one."""
    inside = [name for name in tensors.parameters if name.startswith(prefix)]
    if prefix and missing.issuperset(inside):
        yield f"{escape(prefix)}*"
        return
    children = dict.fromkeys(name[len(prefix) :].partition(".")[0] for name in inside)
    for child in children:
        name = prefix + child
        if name in tensors.shapes:
            if name in missing:
                yield escape(name)
        else:
            yield from _patterns(f"{name}.", tensors, missing)


def _describe(
    network: nn.Module, tensors: NetworkTensors, algorithm: Algorithm, home: Collection[str]
) -> LayersAtHome:
    of_norms = _norm_tensors(network)
    parameters = [name for name in tensors.parameters if name not in of_norms]
    kept = [name for name in parameters if name in home]
    linear = [one for one in network.modules() if isinstance(one, nn.Linear)]
    is_end = kept == parameters[len(parameters) - len(kept) :]
    has_head = any(name in home for name in tensors.last)
    usual = ""
    if not kept:
        usual = "FedBN" if isinstance(algorithm, FedBn) else "FedBN with some of its norms"
    elif is_end and has_head:
        usual = "FedPer, or FedRep, which trains the same layers by turns"
        usual += "" if not of_norms.keys() & home else ", with norms at home too"
    missing = listed([name for name in tensors.parameters if name in home], tensors.shapes)
    return LayersAtHome(
        algorithm, missing, usual, has_head, linear[-1].out_features if linear else 0
    )


def _norm_tensors(network: nn.Module) -> Mapping[str, str]:
    """Return the tensors of layers that normalise, with the names of their layers."""
    return {
        f"{path}.{name}" if path else name: path
        for path, module in network.named_modules()
        if isinstance(module, NORMS)
        for name, _ in (*module.named_parameters(), *module.named_buffers())
    }
