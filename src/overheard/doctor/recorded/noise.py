"""What updates and models of a recording tell of the noise in them.

The tests rest on one inequality. Gaussian noise that is added to any number, independent of it,
has at least as few values near zero as without that number (Anderson 1955, for one dimension):
P[|shift + noise| <= t] <= P[|noise| <= t]. So in updates with the stated noise at most half of
all coordinates lie within 0.6745 deviations of zero, whatever the clients trained and whoever
clipped. The number of those that do is at most binomial.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import final

import torch
from torch import Tensor

from overheard.core.messages import (
    Aggregate,
    Broadcast,
    Message,
    UnstoredMessage,
    Update,
    Weights,
)
from overheard.core.parties import Party
from overheard.doctor.recorded.evidence import (
    Examined,
    Fault,
    Hidden,
    RunEvidence,
    StatedMechanism,
)
from overheard.statistics.evenly_spaced import select_evenly_spaced

MAX_UPDATES = 200
"""Most updates that are read, evenly spaced over the run."""

MAX_COORDINATES = 20_000
"""Most coordinates of an update that are kept, evenly spaced over all of them."""

MIN_COORDINATES = 50
"""Fewest coordinates from which anything is concluded."""

QUARTILE = 0.674489750196082
"""Half of the values of a Gaussian lie within this many deviations of its mean."""

FALSE_ALARM = 1e-6
"""Chance of a false alarm of a rule in a whole run, at most."""

MAX_BATCH_RATIO = 1.5
"""How far the size of a batch may be from that of the recipe, as a ratio."""

TRAINED_MARGIN = 0.5
"""The share of the stated noise that DP-SGD leaves in an update at least.

Later steps may undo noise of earlier ones, so the inequality is no proof there. In 4,000
updates of honest runs at least 0.83 was left (tests/doctor/recorded/test_false_alarms.py)."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class NoisySample:
    """Coordinates of an update, or of what the server's noise is in.

    Args:
        round: the round.
        sender: the party that sent it.
        values: coordinates, the same of each sample of a run.
        norm: L2 norm over all coordinates.
        size: number of all coordinates.
        deviation: the deviation of the noise that is stated; 0 = not known.

    """

    round: int
    sender: Party
    values: Tensor
    norm: float
    size: int
    deviation: float

    @property
    def measured_deviation(self) -> float:
        """The most noise that the finite coordinates allow, as a deviation."""
        return float(self.values[self.values.isfinite()].abs().median()) / QUARTILE

    @property
    def name(self) -> str:
        """The sender and the round in words."""
        return f"{self.sender}, round {self.round}"


def has_too_little(values: Tensor, deviation: float, tests: int) -> bool:
    """Return whether values have less Gaussian noise than this deviation.

    Args:
        values: numbers that each contain noise of their own; others than finite ones tell
            nothing of it.
        deviation: the deviation that they must have at least.
        tests: number of such tests in a run, which share `FALSE_ALARM`.

    """
    values = values[values.isfinite()]
    count = values.numel()
    if count < MIN_COORDINATES or deviation <= 0:
        return False
    from scipy.stats import binom

    near = int((values.abs() <= QUARTILE * deviation).sum())
    return bool(binom.sf(near - 1, count, 0.5) < FALSE_ALARM / max(tests, 1))


def examine_noise(
    run: RunEvidence, find: Callable[[str, Sequence[NoisySample]], Fault | str | None]
) -> Examined:
    """Look at the noise of each mechanism of a recording.

    Args:
        run: the run.
        find: takes a mechanism's name and its noise, and returns a fault, or in words why it
            could not look, or None.

    """
    noisy = [one for one in run.mechanisms if one.mechanism.noise_multiplier > 0]
    if not noisy or not run.is_recorded:
        return None
    faults, hidden = list[Fault](), list[str]()
    for one in noisy:
        samples = telling_samples(run, one)
        found = samples if isinstance(samples, str) else find(one.name, samples)
        if isinstance(found, str):
            hidden.append(f"{one.name}: {found}")
        elif found is not None:
            faults.append(found)
    return tuple(faults) if faults or not hidden else Hidden("; ".join(hidden))


@lru_cache(maxsize=2)
def noise_samples(run: RunEvidence, one: StatedMechanism) -> tuple[NoisySample, ...] | str:
    """Return what was sent or released whose noise a mechanism states; a text = why not."""
    if one.mechanism.noised_at == "server":
        if "Adaptive" in one.name:
            return "its clip, and so its noise, changes from round to round"
        if not _adds_mean(run.algorithm):
            return "that the server adds the mean as it is, as FedAvg does, is not stated"
        found: tuple[NoisySample, ...] | str = _server_samples(run, one)
    else:
        found = one.mechanism.unproven or _client_samples(run, one)
    return found or "no update and no model that contains its noise is recorded"


def telling_samples(run: RunEvidence, one: StatedMechanism) -> tuple[NoisySample, ...] | str:
    """Return the samples that are large enough to tell their noise; a text = why not."""
    found = noise_samples(run, one)
    if isinstance(found, str):
        return found
    telling = (one for one in found if int(one.values.isfinite().sum()) >= MIN_COORDINATES)
    return tuple(telling) or (
        f"no message has {MIN_COORDINATES} numbers that are finite, and fewer tell no noise"
    )


def _client_samples(run: RunEvidence, one: StatedMechanism) -> tuple[NoisySample, ...] | str:
    mechanism, recipe = one.mechanism, run.recipe
    if mechanism.unit == "record" and (
        recipe is None or recipe.optimizer != "sgd" or mechanism.record_rate is None
    ):
        return (
            "how much noise of its steps is left in an update is known only for SGD with a "
            "stated rate, and a stated share of records in a step"
        )
    samples = update_samples(run, one)
    if mechanism.noise_multiplier > 0 and not any(sample.deviation for sample in samples):
        return "the size of a step's batch is not known, or the reported counts do not fit it"
    return samples


def _adds_mean(algorithm: str) -> bool:
    """Return whether an algorithm, as text, adds the mean update to the model as it is."""
    return algorithm.startswith(("FedAvg(rate=1.0", "FedProx("))


def update_samples(
    run: RunEvidence, one: StatedMechanism | None = None
) -> tuple[NoisySample, ...]:
    """Return the updates of clients, with the noise that a mechanism states for them."""
    sent = [
        (message, message.body) for message in run.messages if isinstance(message.body, Update)
    ]
    absent = frozenset(name for _, body in sent for name in body.absent)
    return tuple(
        _sample(
            *sent[place],
            absent,
            0.0 if one is None else _client_deviation(run, one, sent[place][1]),
        )
        for place in select_evenly_spaced(range(len(sent)), MAX_UPDATES)
    )


def _client_deviation(run: RunEvidence, one: StatedMechanism, update: Update) -> float:
    """Return the least noise of a client's update by its settings; 0 = not known."""
    mechanism, recipe = one.mechanism, run.recipe
    if mechanism.unit == "client":
        return mechanism.noise_multiplier * mechanism.clip * sqrt(mechanism.steps)
    rate = mechanism.record_rate
    if recipe is None or rate is None or not update.examples:
        return 0.0
    batch: float = rate * update.examples
    if recipe.private_steps is None:
        # Some clients report another number, such as that of their batches.
        if not 1 / MAX_BATCH_RATIO < batch / recipe.batch < MAX_BATCH_RATIO:
            return 0.0
        batch = max(batch, recipe.batch)
    # Each step moves by rate * noise / batch; momentum moves on by more.
    step = recipe.rate * mechanism.noise_multiplier * mechanism.clip / batch
    return TRAINED_MARGIN * step * sqrt(mechanism.steps)


def _server_samples(run: RunEvidence, one: StatedMechanism) -> tuple[NoisySample, ...]:
    """Return the changes of the global model minus the mean update, in which is the noise.

    A wrong mean only hides noise that is too small: it is no noise of its own.
    """
    models = {
        message.round: message
        for message in run.messages
        if isinstance(message.body, Broadcast)
    }
    rounds = [number for number in models if number + 1 in models]
    replies_of = replies_by_round(run.messages)
    found = list[NoisySample]()
    for number in select_evenly_spaced(rounds, MAX_UPDATES):
        replies = replies_of.get(number, ())
        before, after = models[number].body, models[number + 1].body
        assert isinstance(before, Broadcast)
        assert isinstance(after, Broadcast)
        updates = [message.body for message in replies if isinstance(message.body, Update)]
        if not updates or len(updates) < len(replies):
            continue  # what was not stored is in the mean, too
        cohort = one.number("num_sampled_clients") or len(replies)
        mechanism = one.mechanism
        deviation = mechanism.noise_multiplier * mechanism.clip / cohort
        clip = mechanism.clip if mechanism.bounded_at == "server" else None
        residual = _residual(before.weights, after.weights, updates, clip)
        found.append(_sample(models[number], Update(residual), frozenset(), deviation))
    return tuple(found)


def replies_by_round(messages: Sequence[Message]) -> dict[int, tuple[Message, ...]]:
    """Return, for each round, the messages in which a client contributed to it."""
    found = defaultdict[int, list[Message]](list)
    for message in messages:
        if isinstance(message.body, Update | UnstoredMessage):
            found[message.round].append(message)
    return {number: tuple(found[number]) for number in sorted(found)}


def requested_cohorts(messages: Sequence[Message]) -> dict[int, int]:
    """Return, for each round, how many clients contributed, single or in an aggregate."""
    sizes = {number: len(replies) for number, replies in replies_by_round(messages).items()}
    for message in messages:
        if isinstance(message.body, Aggregate):
            sizes[message.round] = max(sizes.get(message.round, 0), len(message.body.cohort))
    return sizes


def _residual(
    before: Weights, after: Weights, updates: Sequence[Update], clip: float | None
) -> Mapping[str, Tensor]:
    """Return the change of a model minus the mean of the updates, which may be clipped."""
    counts = [update.examples for update in updates]
    total = sum(count or 0 for count in counts)
    weights = [
        1 / len(updates) if not total or None in counts else (count or 0) / total
        for count in counts
    ]
    factors = [
        weight if clip is None else weight * min(1.0, clip / max(norm_of(update.delta), 1e-30))
        for update, weight in zip(updates, weights, strict=True)
    ]
    residual = dict[str, Tensor]()
    for name in before:
        change = after[name].double() - before[name].double()
        for update, factor in zip(updates, factors, strict=True):
            change -= factor * update.delta[name].double()
        residual[name] = change
    return residual


def norm_of(delta: Weights) -> float:
    """Return the L2 norm over all tensors."""
    return sqrt(sum(float(delta[name].double().square().sum()) for name in delta))


def _sample(
    message: Message, body: Update, absent: frozenset[str], deviation: float
) -> NoisySample:
    delta = body.delta
    names = [name for name in sorted(delta) if name not in absent]
    parts, size, squares = list[Tensor](), 0, 0.0
    total = sum(delta[name].numel() for name in names)
    stride = max(1, -(-total // MAX_COORDINATES))
    for name in names:
        flat = delta[name].double().flatten()
        parts.append(flat[(-size) % stride :: stride])
        size += flat.numel()
        squares += float(flat.square().sum())
    values = torch.cat(parts) if parts else torch.zeros(0, dtype=torch.float64)
    return NoisySample(message.round, message.sender, values, sqrt(squares), size, deviation)
