"""Manifest records of the defenses in NVFlare's filters."""

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
    "the submitter of the job, which contains the filter; a site controls only the filters in "
    "its own privacy.json"
)
AT_SERVER = "the server, and the submitter of the job, which contains the filter"

DELTA = 1e-5
"""Delta of the accounting as Gaussian noise of equal deviation; Laplace noise has delta 0."""

_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def defenses_of(
    filters: Sequence[Filter], *, weights: int | None = None, at_server: bool = False
) -> tuple[DefenseRecord, ...]:
    """Return the manifest records of these filters, in the order in which they act.

    Args:
        filters: the job's filters of results; recording filters are skipped.
        weights: number of parameters of the model; without it the total noise on the values
            that `SVTPrivacy` releases is unknown.
        at_server: whether the filters act on results at the server.

    """
    return tuple(
        DefenseRecord(
            _WORDS.sub("_", type(one).__name__).lower(),
            describe_filter(one),
            "server" if at_server else "client",
            AT_SERVER if at_server else AT_SITES,
            _svt(one, weights, at_server) if isinstance(one, SVTPrivacy) else None,
        )
        for one in filters
        if not isinstance(one, RecordingFilter)
    )


def describe_filter(one: Filter) -> str:
    """Return a filter's class and its arguments, as far as it stores them."""
    attributes = vars(one)
    settings = []
    for name in list(signature(type(one).__init__).parameters)[1:]:
        value = attributes.get(name, attributes.get(f"_{name}"))
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
    """Describe the noise on the values that `SVTPrivacy` releases.

    From process_dxo and _compute_release_epsilon of NVFlare 2.9.0: c =
    ceil(fraction * weights) values are sent, each clipped to [-gamma, gamma] (per step). The
    Laplace noise has scale 2 gamma c / epsilon_release; its deviation is sqrt(2) times that.
    If it is not set, epsilon_release is c noise_var. All c values may change at once, by 2
    gamma each, which is 2 gamma sqrt(c) in the L2 norm. If the number of weights is unknown, c
    = 1.
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
    """Explain why no privacy accounting covers the filter.

    Lyu, Su and Li 2017 (PVLDB 10(6)), Algorithm 1: noise of scale 2 c Delta / epsilon_2 on
    each query covers c answers above the threshold, so the algorithm stops at the c-th.
    `SVTPrivacy` draws that noise for each value at each pass, and one noisy threshold a call,
    as in Algorithm 1. However, a pass does not stop at the c-th value above the threshold, and
    about half of all values exceed it.
    """
    if weights is None:
        cost = f"{svt.noise_var:g} more for each value sent"
        if svt.epsilon_release is not None:
            cost = f"{released:g} more"
    else:
        cost = f"{released:g} more a round ({sent} values of {weights}), by its own accountant"
    return (
        "the sparse vector technique stops at the c-th value above its threshold (Lyu, Su and "
        "Li 2017, Algorithm 1), and its noise covers c values. SVTPrivacy tests all values at "
        "every pass, and draws the c values to send from all above the threshold. The stated "
        f"epsilon covers the selection alone; the values cost {cost}. Scalars are sent without "
        "noise, and steps, metrics and the number of passes are sent in clear text"
    )
