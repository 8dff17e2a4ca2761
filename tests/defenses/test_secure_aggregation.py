"""Secure aggregation hides single updates, but makes no promise about the sum."""

from overheard.core.defense import RunParameters
from overheard.defenses.secure_aggregation import SecureAggregation


def test_no_single_update_can_be_read() -> None:
    assert SecureAggregation.masks_updates


def test_the_promise_excludes_the_sum_and_names_what_stays_visible() -> None:
    promise = SecureAggregation().promise(RunParameters(rounds=12, participation=1.0))
    assert promise.startswith("no formal promise about what the sums reveal")
    for part in ("12 rounds", "mean update", "clients", "total number of examples", "collude"):
        assert part in promise
