"""What a run states of its server's step: the algorithm, noise, and what the user accepts."""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

from overheard.algorithms.adaptive import FedAdagrad, FedAdam, FedYogi
from overheard.algorithms.fed_avg import FedAvg
from overheard.algorithms.fed_avg_m import FedAvgM
from overheard.algorithms.fed_bn import FedBn
from overheard.algorithms.fed_buff import FedBuff
from overheard.algorithms.fed_nova import FedNova
from overheard.algorithms.fed_prox import FedProx
from overheard.algorithms.partial_sharing import PartialSharing
from overheard.algorithms.scaffold import Scaffold
from overheard.archive.manifest import SIMULATION, Manifest
from overheard.consistency.samples import LARGEST
from overheard.core.algorithm.algorithm import Algorithm
from overheard.disk.reading import parse_expression, parse_literal

ALGORITHMS: Mapping[str, type[Algorithm]] = MappingProxyType(
    {
        one.__name__: one
        for one in (
            FedAvg,
            FedAvgM,
            FedAdam,
            FedYogi,
            FedAdagrad,
            FedProx,
            FedBn,
            FedBuff,
            FedNova,
            PartialSharing,
            Scaffold,
        )
    }
)
"""The algorithms whose text in a manifest is understood, by the name of the class."""

LONGEST_TEXT = 1000
"""Most characters of such a text."""

_CALL = re.compile(r"[A-Za-z]+\((?:[^()]|\([^()]*\))*\)")


@final
@dataclass(frozen=True, slots=True)
class StatedStep:
    """What the plan or the manifest states of the server's step.

    Args:
        algorithm: the algorithm; None if it is not stated.
        noise: standard deviation of the noise that the server adds to each number of the sum of
            the replies; it is divided by their number in the mean. 0 = none is stated.
        framework: the framework of the run, with its version, for advice that fits it.
        accept: why the user accepts the recording in spite of a contradiction; "" = not.

    """

    algorithm: Algorithm | None = None
    noise: float = 0.0
    framework: str = ""
    accept: str = ""

    @property
    def is_asynchronous(self) -> bool:
        """Whether replies may be used in a later round than the one that they began in."""
        return isinstance(self.algorithm, FedBuff)


def state_step(manifest: Manifest, accept: str = "") -> StatedStep:
    """Return what a manifest states of the server's step.

    Args:
        manifest: the manifest.
        accept: why the user accepts the recording in spite of a contradiction; "" = not.

    """
    algorithm = parse_algorithm(manifest.algorithm) or parse_algorithm(manifest.protocol)
    if algorithm is None and manifest.framework == SIMULATION:
        algorithm = FedAvg() if manifest.protocol == "fedavg" else None
    noises = [
        one.mechanism.noise_multiplier * one.mechanism.clip
        for one in manifest.defenses
        if one.mechanism is not None and one.mechanism.noised_at == "server"
    ]
    # Larger noise than any number of a model is none that was added.
    noise = max((one for one in noises if one <= LARGEST), default=0.0)
    return StatedStep(algorithm, noise, manifest.framework, accept)


def parse_algorithm(text: str) -> Algorithm | None:
    """Return the algorithm that a text such as "FedAvgM(rate=1.0, momentum=0.9)" describes.

    Nothing is imported or called but the listed classes, with settings that are plain values.
    None is returned for any other text.
    """
    found = _CALL.match(text[:LONGEST_TEXT])
    if found is None:
        return None
    try:
        call = parse_expression(found[0])
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            return None
        settings = {str(one.arg): parse_literal(one.value) for one in call.keywords}
        return ALGORITHMS[call.func.id](**settings)
    # Settings of another version, or of wrong types or ranges.
    except (SyntaxError, KeyError, TypeError, ValueError):
        return None
