"""The cosines of canary clients with what a run released."""

from collections.abc import Sequence
from math import sqrt

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from overheard.core.algorithm.canary_direction import draw_canary_direction
from overheard.core.messages import Broadcast, Update, Weights
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.true_facts.canary_directions import CanaryDirections
from overheard.findings.privacy.canary_scores import CanaryEvidence, CanaryScores

NULL_DRAWS = 20_000
"""Canaries that did not take part, of which the largest cosines over rounds are drawn."""


def read_canary_scores(
    transcript: Transcript, canaries: CanaryDirections, seed: Seed
) -> tuple[CanaryScores, ...]:
    """Return the scores of the canaries of a run, by what they are compared with.

    The change of the global model in a round is read without its part in the span of the other
    clients' updates, where these are recorded: the promise is against an observer who knows
    them, and so the other canaries. What is left are one canary and noise. A canary that sent
    no update did not take part.

    Args:
        transcript: the messages of the run.
        canaries: the seeds of their directions.
        seed: for the draws of canaries that did not take part.

    """
    sent = {
        (message.round, message.sender): message.body.delta
        for message in transcript.messages
        if isinstance(message.body, Update)
    }
    models = {
        message.round: message.body.weights
        for message in transcript.messages
        if isinstance(message.body, Broadcast)
    }
    rounds = [number for number in sorted(models) if number + 1 in models]
    senders = {sender for _, sender in sent}
    present = [one for one in canaries.seeds if one in senders]
    if not rounds or not present:
        return ()
    directions = torch.stack(
        [
            _flat(draw_canary_direction(models[rounds[0]], Seed(canaries.seeds[one])))
            for one in present
        ]
    )
    changes, parts = [], []
    for number in rounds:
        others = [
            _flat(delta)
            for (place, sender), delta in sent.items()
            if place == number and sender not in canaries.seeds
        ]
        is_sent = torch.tensor([(number, one) in sent for one in present])
        change = _flat(models[number + 1]) - _flat(models[number])
        change, part = without_canaries(_without(change, others), directions, is_sent)
        changes.append(change)
        parts.append(part)
    rest, own = torch.stack(changes), torch.stack(parts, 1)
    own_sums = torch.stack(
        [
            torch.stack([_flat(delta) for (_, one), delta in sent.items() if one == party]).sum(
                0
            )
            for party in present
        ]
    )
    dimension, count = directions.shape[1], len(rounds)
    together = cosines_with(directions, rest.sum(0, keepdim=True), own.sum(1, keepdim=True))
    alone = torch.nn.functional.cosine_similarity(directions, own_sums, dim=1)
    return (
        single_scores("all rounds together", together[:, 0], dimension, count),
        best_round_scores(cosines_with(directions, rest, own), rest, seed),
        single_scores("own updates", alone.numpy(), dimension, count),
    )


def single_scores(
    evidence: CanaryEvidence,
    cosines: Float[np.ndarray, " canaries"],
    dimension: int,
    rounds: int,
) -> CanaryScores:
    """Return the scores of one cosine for each canary.

    A random direction has the cosine t with any other one with a density of
    (1 - t^2)^((d - 3) / 2), whose variance is 1 / d.
    """
    from scipy.special import betainc

    half = (dimension - 1) / 2
    return CanaryScores(
        evidence,
        tuple((cosines * sqrt(dimension)).tolist()),
        tuple(betainc(half, half, ((1 - cosines) / 2).clip(0, 1)).tolist()),
        dimension,
        rounds,
    )


def best_round_scores(
    cosines: Float[np.ndarray, "canaries rounds"],
    changes: Float[Tensor, "rounds weights"],
    seed: Seed,
) -> CanaryScores:
    """Return the scores of the largest cosine over rounds.

    For a canary that did not take part, cosines with the rounds depend on the angles between
    these alone. So they are drawn in the span of the rounds, and the rest of such a direction
    only by its length.
    """
    rounds, dimension = changes.shape
    unit = changes.double() / changes.double().norm(dim=1, keepdim=True).clamp(min=1e-30)
    values, vectors = torch.linalg.eigh(unit @ unit.T)
    root = (vectors * values.clamp(min=0).sqrt()).numpy()
    generator = seed.numpy()
    inside = generator.standard_normal((NULL_DRAWS, rounds))
    rest = generator.chisquare(max(dimension - rounds, 1), NULL_DRAWS)
    lengths = np.sqrt((inside**2).sum(1) + rest)
    null = np.sort(((inside @ root.T) / lengths[:, None]).max(1))
    best = cosines.max(1)
    above = NULL_DRAWS - np.searchsorted(null, best)
    return CanaryScores(
        "best round",
        tuple(((best - null.mean()) / null.std()).tolist()),
        tuple(((above + 1) / (NULL_DRAWS + 1)).tolist()),
        dimension,
        rounds,
    )


def without_canaries(
    change: Float[Tensor, " weights"],
    directions: Float[Tensor, "canaries weights"],
    is_sent: Bool[Tensor, " canaries"],
) -> tuple[Float[Tensor, " weights"], Float[Tensor, " canaries"]]:
    """Return a change without all canaries, and how much of its direction each put into it.

    All canaries of a round count alike, so their mean is taken. An observer who knows all other
    clients knows the other canaries too.
    """
    along = directions @ change
    mean = along[is_sent].mean() if bool(is_sent.any()) else along.new_zeros(())
    own = torch.where(is_sent, mean, 0.0)
    return change - own @ directions, own


def cosines_with(
    directions: Float[Tensor, "canaries weights"],
    rest: Float[Tensor, "changes weights"],
    own: Float[Tensor, "canaries changes"],
) -> Float[np.ndarray, "canaries changes"]:
    """Return the cosine of each direction with each change.

    Args:
        directions: of norm 1.
        rest: the changes without canaries.
        own: how much of its direction each canary put into a change.

    """
    along = directions @ rest.T  # (canaries, changes)
    squares = rest.square().sum(1) + 2 * own * along + own.square()
    found: Float[np.ndarray, "canaries changes"] = (
        (along + own) / squares.clamp(min=1e-60).sqrt()
    ).numpy()
    return found


def _without(
    change: Float[Tensor, " weights"], updates: Sequence[Float[Tensor, " weights"]]
) -> Float[Tensor, " weights"]:
    """Return a change without its part in the span of these updates, if that is not all."""
    if not updates or 2 * len(updates) > len(change):
        return change
    basis, _ = torch.linalg.qr(torch.stack(tuple(updates), 1))
    left: Tensor = change - basis @ (basis.T @ change)
    return left


def _flat(weights: Weights) -> Float[Tensor, " weights"]:
    kept = [one for _, one in sorted(weights.items()) if one.is_floating_point()]
    return torch.cat([one.detach().float().flatten() for one in kept])
