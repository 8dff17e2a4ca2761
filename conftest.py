"""How all tests are run: types are checked, no clock can fail a test."""

from hypothesis import HealthCheck, settings

from tests import typed

typed.mend_hook()

# A deadline for an example, and one of 30 s to make the first ten, are kept by the clock on the
# wall: they say that a machine is busy, not that a test fails.
settings.register_profile(
    "unhurried", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("unhurried")
