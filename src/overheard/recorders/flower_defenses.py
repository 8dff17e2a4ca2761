"""Flower's own defenses, as they stand in a manifest."""

import logging
import math
from collections.abc import Iterable

from flwr.clientapp.mod import LocalDpMod, adaptiveclipping_mod, fixedclipping_mod
from flwr.serverapp.strategy import (
    DifferentialPrivacyServerSideAdaptiveClipping,
    DifferentialPrivacyServerSideFixedClipping,
)
from flwr.serverapp.strategy.dp_adaptive_clipping import DifferentialPrivacyAdaptiveBase
from flwr.serverapp.strategy.dp_fixed_clipping import DifferentialPrivacyFixedClippingBase

from overheard.archive.manifest import DefenseRecord
from overheard.core.mechanism import Mechanism

DELTA = 1e-5
"""At which epsilon is reckoned where Flower is not told any delta."""

SERVER = "the server, which may leave out the noise and the clipping"
MOD = (
    "whoever ships the client app, in which the mod rides; each client, if it runs another app"
)
SERVER_AND_MOD = f"the server, which may leave out the noise; the clipping: {MOD}"

WEIGHED = (
    "its noise is calibrated to clip / clients, but clients weigh by the number of examples "
    "that they say they have, and one could weigh up to 1: an `accountant` has Flower refuse "
    "unequal weights"
)
"""Why Flower's noise covers nothing where nobody has it check the weights."""

_LOG = logging.getLogger("overheard")


def defense_records(defenses: Iterable[object]) -> tuple[DefenseRecord, ...]:
    """How these defenses stand in a manifest; warns of one that is none of Flower's.

    Args:
        defenses: strategies that add differential privacy, mods of a client app, or records
            made by hand.

    """
    made = []
    for defense in defenses:
        record = _record(defense)
        if record is None:
            _LOG.warning(
                "overheard: %s is no defense of Flower's, and the recording does not tell of "
                "it: name it by an overheard.archive.manifest.DefenseRecord",
                type(defense).__name__,
            )
        else:
            made.append(record)
    return tuple(made)


def _record(defense: object) -> DefenseRecord | None:
    if isinstance(defense, DefenseRecord):
        return defense
    if isinstance(defense, LocalDpMod):
        return _local(defense)
    if isinstance(defense, DifferentialPrivacyFixedClippingBase):
        return _fixed(defense)
    if isinstance(defense, DifferentialPrivacyAdaptiveBase):
        return _adaptive(defense)
    if defense in (fixedclipping_mod, adaptiveclipping_mod):
        # Clips; whoever adds the noise is told by the strategy that it needs.
        name = "fixedclipping_mod" if defense is fixedclipping_mod else "adaptiveclipping_mod"
        return DefenseRecord(name, name, "client", MOD)
    return None


def _local(mod: LocalDpMod) -> DefenseRecord:
    """Clips, then adds sensitivity * sqrt(2 ln(1.25 / delta)) / epsilon to every weight.

    That is the classical Gaussian mechanism (Dwork and Roth 2014, theorem A.1), proven for
    epsilon below 1, once a message. The `sensitivity` is as its user says, whatever the clip.
    """
    settings = (
        f"LocalDpMod(clipping_norm={mod.clipping_norm!r}, sensitivity={mod.sensitivity!r}, "
        f"epsilon={mod.epsilon!r}, delta={mod.delta!r})"
    )
    mechanism = None
    if mod.epsilon > 0 and 0 < mod.delta < 1:
        noise = mod.sensitivity * math.sqrt(2 * math.log(1.25 / mod.delta)) / mod.epsilon
        mechanism = Mechanism(
            noise / mod.clipping_norm,
            mod.clipping_norm,
            mod.delta,
            "client",
            "client",
            stated=mod.epsilon,
            stated_for="round",
        )
    return DefenseRecord("LocalDpMod", settings, "client", MOD, mechanism)


def _fixed(strategy: DifferentialPrivacyFixedClippingBase) -> DefenseRecord:
    """Adds noise_multiplier * clipping_norm / num_sampled_clients to the weighted mean."""
    config = None if strategy.accountant is None else strategy.accountant.config
    is_by_server = isinstance(strategy, DifferentialPrivacyServerSideFixedClipping)
    mechanism = Mechanism(
        strategy.noise_multiplier,
        strategy.clipping_norm,
        DELTA if config is None else config.target_delta,
        "server",
        "server" if is_by_server else "client",
        # What Flower's accountant counts on where it draws no advantage from who was asked.
        moves=2.0 if config is None else 1.0,
        stated=None if config is None else config.max_epsilon,
        unproven=WEIGHED if config is None else "",
    )
    settings = (
        f"{type(strategy).__name__}(noise_multiplier={strategy.noise_multiplier!r}, "
        f"clipping_norm={strategy.clipping_norm!r}, "
        f"num_sampled_clients={strategy.num_sampled_clients!r})"
    )
    return DefenseRecord(
        type(strategy).__name__,
        settings,
        "server",
        SERVER if is_by_server else SERVER_AND_MOD,
        mechanism,
    )


def _adaptive(strategy: DifferentialPrivacyAdaptiveBase) -> DefenseRecord:
    """As `_fixed`, with a clip that moves towards a quantile of the updates' norms.

    The multiplier is that of all that a round releases, the mean and the noisy count of who was
    clipped: 1 / sqrt(z_mean^-2 + (2 s_count)^-2) (Andrew et al. 2021, theorem 1). The clip is
    the first; noise is always in proportion to the one in force.
    """
    mean, count = strategy.noise_multiplier, strategy.clipped_count_stddev
    whole = 0.0 if not mean or not count else (mean**-2 + (2 * count) ** -2) ** -0.5
    is_by_server = isinstance(strategy, DifferentialPrivacyServerSideAdaptiveClipping)
    mechanism = Mechanism(
        whole,
        strategy.clipping_norm,
        DELTA,
        "server",
        "server" if is_by_server else "client",
        unproven=WEIGHED,
    )
    settings = (
        f"{type(strategy).__name__}(noise_multiplier={whole!r}, "
        f"initial_clipping_norm={strategy.clipping_norm!r}, "
        f"num_sampled_clients={strategy.num_sampled_clients!r}, "
        f"target_clipped_quantile={strategy.target_clipped_quantile!r}, "
        f"clip_norm_lr={strategy.clip_norm_lr!r}, clipped_count_stddev={count!r})"
    )
    return DefenseRecord(
        type(strategy).__name__,
        settings,
        "server",
        SERVER if is_by_server else SERVER_AND_MOD,
        mechanism,
    )
