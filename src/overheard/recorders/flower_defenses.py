"""Manifest records of Flower's own defenses."""

import logging
import math
from collections.abc import Iterable

from overheard.archive.manifest import DefenseRecord
from overheard.core.mechanism import Mechanism
from overheard.recorders.flower_api import (
    DifferentialPrivacyAdaptiveBase,
    DifferentialPrivacyFixedClippingBase,
    DifferentialPrivacyServerSideAdaptiveClipping,
    DifferentialPrivacyServerSideFixedClipping,
    LocalDpMod,
    adaptiveclipping_mod,
    fixedclipping_mod,
)

DELTA = 1e-5
"""Delta for the accounting if none is configured in Flower."""

SWITCHED_OFF_BY_SERVER = "the server, which may omit the noise and the clipping"
SWITCHED_OFF_IN_CLIENT_APP = (
    "the distributor of the client app, which contains the mod; each client, by running "
    "another app"
)
SWITCHED_OFF_BY_EITHER = (
    f"the server, which may omit the noise; the clipping: {SWITCHED_OFF_IN_CLIENT_APP}"
)

UNEQUAL_WEIGHTS = (
    "its noise is calibrated to clip / clients, but clients are weighted by their reported "
    "number of examples, so a weight may be up to 1: with an `accountant` Flower refuses "
    "unequal weights"
)
"""Why Flower's noise gives no guarantee unless Flower checks the weights."""

_LOG = logging.getLogger("overheard")


def stated_defenses(
    defenses: Iterable[object] | None,
) -> tuple[tuple[DefenseRecord, ...], bool]:
    """Return the records of these defenses, and whether these are all that are in force.

    They are not if one of them is unknown, or if `defenses` is None: nobody told.
    """
    given = () if defenses is None else tuple(defenses)
    records = defense_records(given)
    return records, defenses is not None and len(records) == len(given)


def defense_records(defenses: Iterable[object]) -> tuple[DefenseRecord, ...]:
    """Return the manifest records of these defenses; warn about unknown ones.

    Args:
        defenses: strategies that add differential privacy, mods of a client app, or your own
            records.

    """
    records = []
    for defense in defenses:
        record = _record(defense)
        if record is None:
            _LOG.warning(
                "overheard: %s is no defense of Flower, so it is not in the recording: pass an "
                "overheard.archive.manifest.DefenseRecord for it",
                type(defense).__name__,
            )
        else:
            records.append(record)
    return tuple(records)


def _record(defense: object) -> DefenseRecord | None:
    if isinstance(defense, DefenseRecord):
        return defense
    if isinstance(defense, LocalDpMod):
        return _local_dp(defense)
    if isinstance(defense, DifferentialPrivacyFixedClippingBase):
        return _fixed_clipping(defense)
    if isinstance(defense, DifferentialPrivacyAdaptiveBase):
        return _adaptive_clipping(defense)
    if defense in (fixedclipping_mod, adaptiveclipping_mod):
        # It only clips; the noise is in the record of its strategy.
        name = "fixedclipping_mod" if defense is fixedclipping_mod else "adaptiveclipping_mod"
        return DefenseRecord(name, name, "client", SWITCHED_OFF_IN_CLIENT_APP)
    return None


def _local_dp(mod: LocalDpMod) -> DefenseRecord:
    """Record clipping and noise of deviation sensitivity * sqrt(2 ln(1.25 / delta)) / epsilon.

    The classical Gaussian mechanism (Dwork and Roth 2014, theorem A.1), proven for epsilon
    below 1, applied to each message. The user sets `sensitivity` independently of the clip, so
    nobody states whether it is that of a client that is replaced, or removed.
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
            is_relation_stated=False,
        )
    return DefenseRecord(
        "LocalDpMod", settings, "client", SWITCHED_OFF_IN_CLIENT_APP, mechanism
    )


def _fixed_clipping(strategy: DifferentialPrivacyFixedClippingBase) -> DefenseRecord:
    """Record noise of deviation noise_multiplier * clipping_norm / num_sampled_clients."""
    config = None if strategy.accountant is None else strategy.accountant.config
    is_by_server = isinstance(strategy, DifferentialPrivacyServerSideFixedClipping)
    mechanism = Mechanism(
        strategy.noise_multiplier,
        strategy.clipping_norm,
        DELTA if config is None else config.target_delta,
        "server",
        "server" if is_by_server else "client",
        # Flower's accountant assumes a sensitivity of 1 clip if it uses no subsampling.
        moves=2.0 if config is None else 1.0,
        stated=None if config is None else config.max_epsilon,
        unproven=UNEQUAL_WEIGHTS if config is None else "",
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
        SWITCHED_OFF_BY_SERVER if is_by_server else SWITCHED_OFF_BY_EITHER,
        mechanism,
    )


def _adaptive_clipping(strategy: DifferentialPrivacyAdaptiveBase) -> DefenseRecord:
    """Record adaptive clipping, whose clip tracks a quantile of the updates' norms.

    The multiplier covers all that a round releases, the mean and the noisy count of clipped
    clients: 1 / sqrt(z_mean^-2 + (2 s_count)^-2) (Andrew et al. 2021, theorem 1). The clip is
    the initial one; the noise is proportional to the current clip.
    """
    mean_multiplier, count_deviation = strategy.noise_multiplier, strategy.clipped_count_stddev
    multiplier = (
        0.0
        if not mean_multiplier or not count_deviation
        else (mean_multiplier**-2 + (2 * count_deviation) ** -2) ** -0.5
    )
    is_by_server = isinstance(strategy, DifferentialPrivacyServerSideAdaptiveClipping)
    mechanism = Mechanism(
        multiplier,
        strategy.clipping_norm,
        DELTA,
        "server",
        "server" if is_by_server else "client",
        unproven=UNEQUAL_WEIGHTS,
    )
    settings = (
        f"{type(strategy).__name__}(noise_multiplier={multiplier!r}, "
        f"initial_clipping_norm={strategy.clipping_norm!r}, "
        f"num_sampled_clients={strategy.num_sampled_clients!r}, "
        f"target_clipped_quantile={strategy.target_clipped_quantile!r}, "
        f"clip_norm_lr={strategy.clip_norm_lr!r}, clipped_count_stddev={count_deviation!r})"
    )
    return DefenseRecord(
        type(strategy).__name__,
        settings,
        "server",
        SWITCHED_OFF_BY_SERVER if is_by_server else SWITCHED_OFF_BY_EITHER,
        mechanism,
    )
