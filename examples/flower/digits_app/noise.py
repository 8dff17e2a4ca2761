"""Flower's local DP, as configured for the run."""

from collections.abc import Mapping

from flwr.clientapp.mod import LocalDpMod

CLIP, DELTA = 5.0, 1e-5


def make_noise_mod(config: Mapping[str, bool | bytes | float | int | str]) -> LocalDpMod | None:
    """Return the mod that clips and adds noise; None if no noise is configured."""
    if not config["epsilon"]:
        return None
    return LocalDpMod(CLIP, float(config["sensitivity"]), float(config["epsilon"]), DELTA)
