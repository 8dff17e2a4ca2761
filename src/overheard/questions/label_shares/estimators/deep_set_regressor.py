"""Networks that estimate label shares of a round from one token per class."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.learning.fitting.ensembles import (
    DeepSetEnsemble,
    EnsembleTraining,
    NetworkEnsemble,
    load_ensemble_weights,
    train_ensemble,
)
from overheard.learning.fitting.share_network import predict_shares
from overheard.learning.fitting.standardizer import (
    Standardizer,
    fit_standardizer,
    fit_standardizer_to_parts,
)
from overheard.learning.seeding import seeded
from overheard.questions.label_shares.estimators.class_tokens import (
    LARGEST_DEVIATION,
    ProbeReadings,
    class_matrices,
    class_tokens,
)

CLIENTS_AT_ONCE = 200
"""Clients whose matrices are in memory at once."""

DEEP_SET_WIDTH = 64

DROPOUT = 0.1

COPIES = 3
"""Networks with the same examples and other initial weights; their mean varies less."""

WEIGHT_PREFIX = "networks of tokens/"
"""Prefix of the names of the networks' weights among the tensors of a `DeepSetRegressor`."""


@final
@dataclass(frozen=True, slots=True)
class DeepSetRegressor:
    """Networks on one token per class, with weights shared by all classes.

    The tokens include the solutions of the equation of the output bias (`ScaledInversion`), one
    for each set of virtual clients.

    Args:
        entry_scale: scale of the class matrices.
        scales: scales of the tokens, one per network.
        networks: `COPIES` for each set of virtual clients; the sets follow one another, copy by
            copy.

    """

    entry_scale: Standardizer
    scales: tuple[Standardizer, ...]
    networks: NetworkEnsemble

    def estimate_shares(
        self, readings: ProbeReadings, solved: Float[Tensor, "networks clients classes"]
    ) -> Float[Tensor, "networks clients classes"]:
        """Estimate the shares of new clients, for which `solved` has the solutions."""
        tokens = _tokens(readings, self.entry_scale, solved)
        shares = predict_shares(self.networks, _inputs(tokens, self.scales))
        return shares.view(COPIES, len(self.scales), *shares.shape[1:]).mean(0)

    def tensors(self) -> dict[str, Tensor]:
        """Return all fitted tensors by name, for `from_tensors`."""
        tensors = self.entry_scale.tensors("entries") | self.networks.state_dict(
            prefix=WEIGHT_PREFIX
        )
        for index, scale in enumerate(self.scales):
            tensors |= scale.tensors(f"tokens/{index}")
        return tensors

    @staticmethod
    def from_tensors(
        tensors: Mapping[str, Tensor], classes: int, sets: int
    ) -> "DeepSetRegressor":
        """Restore the networks of this many sets from `tensors`."""
        indices = range(sets)
        scales = tuple(
            Standardizer.from_tensors(tensors, f"tokens/{index}") for index in indices
        )
        # The initial weights are drawn, then overwritten.
        with seeded(Seed(0)):
            networks = _new_networks(COPIES * len(indices), classes, len(scales[0].mean))
        load_ensemble_weights(networks, tensors, WEIGHT_PREFIX)
        entries = Standardizer.from_tensors(tensors, "entries")
        return DeepSetRegressor(entries, scales, networks)


def fit_deep_set_regressor(
    readings: ProbeReadings,
    shares: Float[Tensor, "clients classes"],
    solved: Float[Tensor, "sets clients classes"],
    rows: Sequence[Int[Tensor, " _rows"]],
    steps: int,
    seed: Seed,
) -> DeepSetRegressor:
    """Train `COPIES` networks on each of these sets of virtual clients.

    Args:
        readings: those of all virtual clients.
        shares: their true label shares.
        solved: for each set, the solutions of the equation of the output bias.
        rows: the clients of each set.
        steps: training steps.
        seed: seed of the initial weights, of the batches and of dropout.

    """
    # One scale for all entries of a kind, so that permuting the classes changes nothing.
    kinds = (class_matrices(chunk).flatten(0, 2) for chunk in _slices(readings))
    entries = fit_standardizer_to_parts(kinds)
    tokens = _tokens(readings, entries, solved)
    scales = tuple(
        fit_standardizer(each[own].flatten(0, 1))
        for each, own in zip(tokens, rows, strict=True)
    )
    inputs = _inputs(tokens, scales)
    with seeded(seed):
        networks = _new_networks(COPIES * len(rows), shares.shape[1], inputs.shape[3])
        train_ensemble(
            networks,
            inputs,
            shares.float(),
            COPIES * list(rows),
            EnsembleTraining(steps),
            seed.child("batches"),
        )
    return DeepSetRegressor(entries, scales, networks)


def _tokens(
    readings: ProbeReadings,
    entries: Standardizer,
    solved: Float[Tensor, "sets clients classes"],
) -> list[Float[Tensor, "clients classes numbers"]]:
    """Return the tokens for each set, which differ only in the solutions."""
    parts = []
    for chunk in _slices(readings):
        parts.append(
            class_tokens(
                entries.standardize(class_matrices(chunk)).clamp(
                    -LARGEST_DEVIATION, LARGEST_DEVIATION
                )
            )
        )
    if readings.log_sizes is not None:
        sizes = readings.log_sizes[:, None, None].expand(
            -1, readings.last_layer_change.shape[1], 1
        )
        parts = [torch.cat((torch.cat(parts), sizes.float()), 2)]
    tokens = torch.cat(parts)
    return [torch.cat((tokens, own, own.sqrt()), 2) for own in solved.float().unsqueeze(3)]


def _inputs(
    tokens: Sequence[Float[Tensor, "clients classes numbers"]], scales: Sequence[Standardizer]
) -> Float[Tensor, "networks clients classes numbers"]:
    pairs = zip(scales, tokens, strict=True)
    inputs = torch.stack([scale.standardize(own).asinh() for scale, own in pairs])
    return inputs.repeat(COPIES, 1, 1, 1)


def _new_networks(networks: int, classes: int, numbers: int) -> NetworkEnsemble:
    return DeepSetEnsemble(networks, classes, numbers, DEEP_SET_WIDTH, DROPOUT)


def _slices(readings: ProbeReadings) -> list[ProbeReadings]:
    sizes = readings.log_sizes
    return [
        ProbeReadings(
            readings.last_layer_change[begin : begin + CLIENTS_AT_ONCE],
            readings.outputs[begin : begin + CLIENTS_AT_ONCE],
            readings.broadcast_outputs,
            readings.class_gradients[begin : begin + CLIENTS_AT_ONCE],
            None if sizes is None else sizes[begin : begin + CLIENTS_AT_ONCE],
        )
        for begin in range(0, len(readings.last_layer_change), CLIENTS_AT_ONCE)
    ]
