"""Flower's local DP, as the run is configured."""

from collections.abc import Mapping

from flwr.clientapp.mod import LocalDpMod

CLIP, DELTA = 5.0, 1e-5


def noise_of(config: Mapping[str, bool | bytes | float | int | str]) -> LocalDpMod | None:
    """Give what clients clip and add noise by; None where the run has no noise."""
    if not config["epsilon"]:
        return None
    return LocalDpMod(CLIP, float(config["sensitivity"]), float(config["epsilon"]), DELTA)
