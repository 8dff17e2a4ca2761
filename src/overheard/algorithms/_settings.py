"""Checks of the settings of algorithms."""

from math import isfinite


def check_positive(name: str, value: float) -> None:
    """Raise `ValueError` unless the setting of this name is above 0 and finite."""
    if not (value > 0 and isfinite(value)):
        raise ValueError(f"{name} must be above 0 and finite, got {value}")


def check_decay(name: str, value: float) -> None:
    """Raise `ValueError` unless the setting of this name lies in [0, 1)."""
    if not 0 <= value < 1:
        raise ValueError(f"{name} must lie in [0, 1), got {value}")


def check_at_least_zero(name: str, value: float) -> None:
    """Raise `ValueError` unless the setting of this name is 0 or more and finite."""
    if not (value >= 0 and isfinite(value)):
        raise ValueError(f"{name} must be 0 or more and finite, got {value}")
