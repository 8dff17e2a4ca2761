import pytest

from overheard.core.parties import client
from overheard_studies.whispers.conclusions import difference, excess
from overheard_studies.whispers.studies import PAPER

FIVE_RUNS = {(seed, client(0)): 0.1 * seed for seed in range(5)}


def test_distances_are_compared_client_by_client_over_runs() -> None:
    # The differences are 0.5 in all runs, which leaves no width, whatever the runs' means are.
    others = {key: one - 0.5 for key, one in FIVE_RUNS.items()} | {(5, client(0)): 9.0}
    lead = difference(FIVE_RUNS, others)
    assert lead is not None
    assert (lead.mean, lead.low, lead.high) == pytest.approx((0.5, 0.5, 0.5))
    assert lead.basis == "runs"


def test_what_was_not_run_has_no_difference() -> None:
    assert difference(FIVE_RUNS, {}) is None
    assert excess({}, 0.1) is None


def test_each_column_of_table_3_is_concluded_alone() -> None:
    table = PAPER.studies()["table3"]
    columns = {one.key for one in table.panels}
    for begin in ("closest", "as_close"):
        alone = [one for one in table.conclusions if one.key.startswith(begin)]
        assert {one.audits for one in alone} == {(column,) for column in columns}
