"""Tensors that stay with each client between rounds, and are in no message."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

import torch
from torch import nn

from overheard.archive.tensor_files import read_tensors, to_safetensors
from overheard.core.algorithm.algorithm import Algorithm
from overheard.core.defense import BuildModel
from overheard.core.errors import OutputError, PlanError, TranscriptError
from overheard.core.messages import Weights, apply_update
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.disk.folders import remove_file
from overheard.disk.writing import write_bytes
from overheard.federation.federation import Federation
from overheard.learning.initialization import fresh_model, initial_weights
from overheard.learning.sent_tensors import sent_tensors


def local_names(algorithm: Algorithm, build_model: BuildModel) -> frozenset[str]:
    """Return the names of the tensors that stay with each client; empty = all are sent.

    Raises:
        PlanError: if the algorithm keeps none or all of the tensors of this model.

    """
    if type(algorithm).local_tensors is Algorithm.local_tensors:
        return frozenset()
    model = fresh_model(build_model, Seed(0))
    sent = sent_tensors(model).keys()
    names = algorithm.local_tensors(model) & sent
    if not names or len(names) == len(sent):
        found = "all" if names else "none"
        raise PlanError(
            f"training.algorithm: {algorithm.name} keeps {found} of the model's tensors with "
            f"each client; it must keep some and send some of {', '.join(sent)}"
        )
    return frozenset(names)


@final
class LocalTensors:
    """The tensors of a run that stay with each client.

    They are on disk after each round, in a folder of their own, because no message has them. A
    resumed run reads them, and so ends with the same bits.
    """

    def __init__(
        self,
        federation: Federation,
        names: frozenset[str],
        folder: Path,
        *,
        inside: Path | None = None,
    ) -> None:
        """Begin with the initial weights, which are the same for all clients.

        Args:
            federation: the federation.
            names: the tensors that stay with each client.
            folder: the folder of the run.
            inside: the output folder that it is in; None = they are one.

        """
        self._inside = folder if inside is None else inside
        self._federation = federation
        self._folder = folder
        seed = federation.seed.child("initial")
        initial = initial_weights(federation.build_model, seed)
        self._names = tuple(initial)
        self._initial = {name: initial[name] for name in initial if name in names}

    def model_of(self, party: Party, number: int, shared: Weights) -> Weights:
        """Return the model of a client at the start of a round, in the model's order.

        Args:
            party: the client.
            number: the round.
            shared: the weights of the broadcast.

        """
        own = self._read(number - 1)[party] if number else self._initial
        return {name: own[name] if name in own else shared[name] for name in self._names}

    def sent_part(self, delta: Weights) -> Weights:
        """Return the part of an update that is sent."""
        return {name: part for name, part in delta.items() if name not in self._initial}

    def write(self, number: int, deltas: Mapping[Party, Weights]) -> None:
        """Write the tensors of all clients after a round; those of two rounds before go.

        Args:
            number: the round.
            deltas: by client that trained, the change of its tensors.

        Raises:
            OutputError: if they cannot be written.

        """
        if number:
            before = self._read(number - 1)
        else:
            before = dict.fromkeys(self._federation.clients, self._initial)
        after = {
            party: apply_update(own, deltas[party]) if party in deltas else own
            for party, own in before.items()
        }
        tensors = {
            _key(party, name): one for party in after for name, one in after[party].items()
        }
        write_bytes(self._path(number), to_safetensors(tensors), inside=self._inside)
        remove_file(self._path(number - 2), inside=self._inside)

    def _read(self, number: int) -> dict[Party, dict[str, torch.Tensor]]:
        shapes = {
            _key(party, name): tuple(one.shape)
            for party in self._federation.clients
            for name, one in self._initial.items()
        }
        try:
            read = read_tensors(self._path(number), tuple(shapes), shapes)
        except TranscriptError as error:
            raise OutputError(
                f"{self._folder}: the run cannot continue after round {number}, because the "
                f"tensors that stay with clients are lost ({error}); remove the folder to "
                "start again"
            ) from error
        return {
            party: {name: read[_key(party, name)] for name in self._initial}
            for party in self._federation.clients
        }

    def _path(self, number: int) -> Path:
        return self._folder / "home" / f"r{number:04d}.safetensors"


def _key(party: Party, name: str) -> str:
    return f"{party} {name}"


@final
@dataclass(frozen=True)
class SharedPartBuilder:
    """Builds the model as an attacker knows it: tensors that stay with clients are frozen.

    No message has them, so that they keep the initial values, which all parties know.

    Args:
        build_model: builds the architecture.
        names: the tensors that stay with clients.
        seed: the seed of the initial weights.

    """

    build_model: BuildModel
    names: tuple[str, ...]
    seed: Seed

    def __call__(self) -> nn.Module:
        """Build the model."""
        model = self.build_model()
        initial = initial_weights(self.build_model, self.seed)
        parameters = dict(model.named_parameters())
        with torch.no_grad():
            for name, tensor in sent_tensors(model).items():
                if name in self.names:
                    tensor.copy_(initial[name])
        for name in self.names:
            if name in parameters:
                parameters[name].requires_grad_(False)
        return model
