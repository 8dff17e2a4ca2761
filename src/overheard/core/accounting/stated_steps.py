"""What a client's message states of its own steps of DP-SGD, under agreed names of metrics."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from overheard.core.accounting.composed_steps import NoisySteps, StepSampling

KINDS = "dp-kinds"
"""Metric with the number of kinds of steps in a message, each with noise, rate and steps."""

NOISE, RATE, STEPS = "dp-noise-multiplier-{}", "dp-sample-rate-{}", "dp-steps-{}"
"""Metrics of a kind of steps, by its number from 1."""

SAMPLING = "dp-sampling"
"""Metric with the sampling of records: a key of `SAMPLINGS`."""

CLIP = "dp-max-grad-norm"
"""Metric with the largest L2 norm of an example's gradient."""

ACCOUNTANT = "dp-accountant"
"""Metric with the accountant of the client: a key of `ACCOUNTANTS`."""

SAMPLINGS: Mapping[int, StepSampling] = {0: "none", 1: "poisson", 2: "shuffled"}
"""The samplings of records by their number in a message; any other is not accounted for."""

OTHER_SAMPLING = 3
"""The number of a sampling that is not accounted for, such as weighted draws."""

ACCOUNTANTS: Mapping[int, str] = {1: "rdp", 2: "prv", 3: "gdp"}
"""Accountants of Opacus by their number in a message; 0 = another one."""

MAX_KINDS = 50
"""Most kinds of steps that a message states; a longer history is stated by its bounds."""

MAX_STEPS = 10**7
"""Most steps of a message that are believed."""


@final
@dataclass(frozen=True, slots=True)
class StatedSteps:
    """The steps of DP-SGD that a message states. Nobody has verified them.

    Args:
        steps: the steps; () if it states none that accounting covers.
        clip: the stated clip; None = not stated.
        accountant: the accountant of the client; "" = another one, or not stated.
        problem: why the message has no epsilon, in words that follow "it"; "" = it has one.

    """

    steps: tuple[NoisySteps, ...] = ()
    clip: float | None = None
    accountant: str = ""
    problem: str = ""


NOTHING_STATED = StatedSteps(problem="states no DP-SGD")
"""What a message without these metrics states."""


def write_steps(
    steps: Sequence[NoisySteps], sampling: int, clip: float, accountant: str
) -> dict[str, float]:
    """Return the metrics that state steps of a message; `read_stated_steps` reads them.

    Args:
        steps: the steps; beyond `MAX_KINDS`, all further ones are stated together with the
            least noise and the highest rate among them.
        sampling: a key of `SAMPLINGS`, or `OTHER_SAMPLING`.
        clip: the clip.
        accountant: a name in `ACCOUNTANTS`; any other counts as unknown.

    """
    kinds = list(steps)
    if len(kinds) > MAX_KINDS:
        rest = kinds[MAX_KINDS - 1 :]
        together = NoisySteps(
            min(one.noise_multiplier for one in rest),
            rest[0].sampling,
            max(one.rate for one in rest),
            sum(one.steps for one in rest),
        )
        kinds = [*kinds[: MAX_KINDS - 1], together]
    stated: dict[str, float] = {KINDS: len(kinds), SAMPLING: sampling, CLIP: clip}
    stated[ACCOUNTANT] = next((key for key, one in ACCOUNTANTS.items() if one == accountant), 0)
    for number, one in enumerate(kinds, start=1):
        stated[NOISE.format(number)] = one.noise_multiplier
        stated[RATE.format(number)] = one.rate
        stated[STEPS.format(number)] = one.steps
    return stated


def read_stated_steps(metrics: Mapping[str, float]) -> StatedSteps | None:
    """Return the steps that the metrics of a message state; None = it states none.

    A client may send any number. One that cannot be is a problem of this client alone.
    """
    if KINDS not in metrics:
        return None
    clip = metrics.get(CLIP, 0.0)
    if not 0 < clip < math.inf:
        return StatedSteps(problem="states no clip above 0")
    sampling = SAMPLINGS.get(_whole(metrics.get(SAMPLING, OTHER_SAMPLING), OTHER_SAMPLING))
    if sampling is None:
        return StatedSteps(clip=clip, problem="states no sampling that accounting covers")
    kinds = []
    for number in range(1, _whole(metrics[KINDS], MAX_KINDS) + 1):
        found = _read_kind(metrics, number, sampling)
        if found is None:
            return StatedSteps(clip=clip, problem=f"states impossible steps (kind {number})")
        kinds.append(found)
    if not kinds:
        return StatedSteps(clip=clip, problem="states no steps with noise")
    accountant = ACCOUNTANTS.get(_whole(metrics.get(ACCOUNTANT, 0), len(ACCOUNTANTS)), "")
    return StatedSteps(tuple(kinds), clip, accountant)


def _read_kind(
    metrics: Mapping[str, float], number: int, sampling: StepSampling
) -> NoisySteps | None:
    try:
        return NoisySteps(
            float(metrics[NOISE.format(number)]),
            sampling,
            float(metrics[RATE.format(number)]),
            _whole(metrics.get(STEPS.format(number), 0), MAX_STEPS),
        )
    except (KeyError, ValueError):
        return None


def _whole(value: float, largest: int) -> int:
    """Return a whole number from 0 to `largest`; -1 if the value is none of them."""
    is_valid = math.isfinite(value) and 0 <= value <= largest and value == int(value)
    return int(value) if is_valid else -1
