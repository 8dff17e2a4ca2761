"""The defenses that NVFlare's filters are, as a manifest states them."""

import math
import re
from collections.abc import Sequence
from enum import Enum
from inspect import signature

from nvflare.apis.filter import Filter
from nvflare.app_common.filters.svt_privacy import SVTPrivacy

from overheard.archive.manifest import DefenseRecord
from overheard.core.mechanism import Mechanism
from overheard.recorders.nvflare import RecordingFilter

AT_SITES = (
    "whoever submits the job, in which the filter rides; only what a site's own privacy.json "
    "asks for is the site's to keep"
)
AT_SERVER = "the server, and whoever submits the job, in which the filter rides"

DELTA = 1e-5
"""At which Gaussian noise of the same deviation is accounted; Laplace's own guarantee has 0."""

_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def defenses_of(
    filters: Sequence[Filter], *, weights: int | None = None, at_server: bool = False
) -> tuple[DefenseRecord, ...]:
    """What these filters state, in the order in which they act.

    Args:
        filters: those of the job that act on results, as they were handed to it; recorders
            among them are passed over.
        weights: how many numbers the model has; without it nobody can say by how much the
            values that `SVTPrivacy` lets through are noised together.
        at_server: whether they act when a result has come to the server.

    """
    return tuple(
        DefenseRecord(
            _WORDS.sub("_", type(one).__name__).lower(),
            settings_of(one),
            "server" if at_server else "client",
            AT_SERVER if at_server else AT_SITES,
            _svt(one, weights, at_server) if isinstance(one, SVTPrivacy) else None,
        )
        for one in filters
        if not isinstance(one, RecordingFilter)
    )


def settings_of(one: Filter) -> str:
    """Its class and what it was made with, as far as it kept that."""
    held = vars(one)
    settings = []
    for name in list(signature(type(one).__init__).parameters)[1:]:
        value = held.get(name, held.get(f"_{name}"))
        if value is not None:
            settings.append(f"{name}={_plain(value)!r}")
    return f"{type(one).__name__}({', '.join(settings)})"


def _plain(value: object) -> object:
    match value:
        case re.Pattern():
            return value.pattern
        case Enum():
            return value.value
        case list() | tuple():
            return [_plain(one) for one in value]
        case _:
            return value


def _svt(svt: SVTPrivacy, weights: int | None, at_server: bool) -> Mechanism:
    """The noise on the values that `SVTPrivacy` lets through.

    As `SVTPrivacy.process_dxo` and `_compute_release_epsilon` of NVFlare 2.9.0 have it: c =
    ceil(fraction * weights) values are sent, each clipped to [-gamma, gamma] (a step), with
    Laplace noise of scale 2 gamma c / epsilon_release and so of a deviation sqrt(2) as large;
    epsilon_release is c noise_var where it is not set. All c may move at once, by 2 gamma
    each: in the L2 norm, by 2 gamma sqrt(c). Where the number of weights is not known, c = 1.
    """
    sent = 1 if weights is None else max(1, min(math.ceil(weights * svt.fraction), weights))
    released = sent * svt.noise_var if svt.epsilon_release is None else svt.epsilon_release
    deviation = math.sqrt(2) * 2 * sent / released  # in units of gamma
    return Mechanism(
        deviation / math.sqrt(sent),
        svt.gamma * math.sqrt(sent),
        DELTA,
        noised_at="server" if at_server else "client",
        bounded_at="server" if at_server else "client",
        stated=float(svt.epsilon),
        stated_for="round",
        unproven=_unproven(svt, weights, sent, released),
    )


def _unproven(svt: SVTPrivacy, weights: int | None, sent: int, released: float) -> str:
    """Why no accounting covers it.

    Lyu, Su and Li 2017 (PVLDB 10(6)), Algorithm 1: noise of scale 2 c Delta / epsilon_2 on
    each query pays for c answers above the threshold, so it stops at the c-th. `process_dxo`
    has that noise, fresh for each value at each pass, and one noisy threshold a call, as
    Algorithm 1 asks; yet a pass does not stop at the c-th, and about half of all pass it.
    """
    if weights is None:
        cost = f"{svt.noise_var:g} more for each value that is sent"
        if svt.epsilon_release is not None:
            cost = f"{released:g} more"
    else:
        cost = f"{released:g} more a round ({sent} values of {weights}), by its own accountant"
    return (
        "the sparse vector technique stops at the c-th value above its threshold (Lyu, Su and "
        "Li 2017, Algorithm 1), and its noise pays for c: SVTPrivacy tries all values at every "
        "pass and draws the c that it sends from all that passed. The epsilon that is stated "
        f"is for the choice alone; the values cost {cost}. Scalars pass without noise, and "
        "steps, metrics and the number of passes travel in clear"
    )
