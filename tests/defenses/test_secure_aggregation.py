"""Secure aggregation hides who said what and promises nothing about the sum."""

from overheard.core.defense import Run
from overheard.defenses.secure_aggregation import SecureAggregation


def test_no_single_update_can_be_read() -> None:
    assert SecureAggregation.masks_updates


def test_the_promise_leaves_the_sum_out_and_names_what_stays_visible() -> None:
    promise = SecureAggregation().promise(Run(rounds=12, participation=1.0))
    assert promise.startswith("no formal promise about what the sums give away")
    for part in ("12 rounds", "mean update", "members", "total size", "collude"):
        assert part in promise
