"""The epsilon of a recorded run is that of its planned rounds, and of its stated sampling."""

from dataclasses import replace
from math import inf

import pytest
import torch

from overheard.archive.asked_rounds import AskedRounds
from overheard.archive.manifest import DefenseRecord, Manifest
from overheard.auditing.run_records import (
    are_exchangeable,
    record_exchange,
    recorded_defenses,
    recorded_run,
)
from overheard.core.accounting.accountant import AccountedMechanism
from overheard.core.examples import Examples
from overheard.core.mechanism import Mechanism
from overheard.core.parties import client
from overheard.data.datasets.digits import Digits
from overheard.data.partition.data_partition import DataPartition
from overheard.data.reading.folder import data_folder
from overheard.data.splits.by_user import ByUser
from overheard.data.splits.dirichlet import Dirichlet
from overheard.data.splits.iid import Iid
from tests.core.closed_form_epsilon import closed_epsilon

LOCAL = Mechanism(4.0, 1.0, 1e-5, "client", "client")
CENTRAL = replace(LOCAL, noised_at="server")
ALL = AskedRounds(rounds=3, most=3, clients=6, share=1.0)
SOME = AskedRounds(rounds=20, most=5, clients=101, share=0.1)


def accounted(
    mechanism: Mechanism,
    asked: AskedRounds = ALL,
    *,
    has_ended: bool = True,
    so_far: int | None = None,
    **stated: object,
) -> AccountedMechanism:
    """Return the mechanism of a recording with these further facts in its manifest."""
    record = DefenseRecord("dp", "Dp()", "client", "each client", mechanism)
    manifest = replace(
        Manifest(None, "", None, (record,), ("server",), None, framework="other"), **stated
    )
    run = recorded_run(manifest, asked, has_ended=has_ended, so_far=so_far)
    (one,) = recorded_defenses(manifest, run)
    assert one.accounted is not None
    return one.accounted


def upper(found: AccountedMechanism) -> float:
    assert found.recomputed is not None
    return found.recomputed.smallest


def test_an_incomplete_recording_has_the_epsilon_of_its_planned_rounds() -> None:
    # Replacing a client moves 2 clips, so mu is sqrt(300) * 2 / 4.
    found = accounted(LOCAL, rounds=300)
    assert upper(found) == pytest.approx(closed_epsilon(300**0.5 / 2, 1e-5))
    assert found.run.rounds_text == "3 of 300 rounds recorded"
    assert accounted(LOCAL, rounds=3).run.rounds_text == "3 rounds"


def test_a_claim_of_an_incomplete_recording_is_false_only_by_the_rounds_asked() -> None:
    # Three rounds have an epsilon of 3.71, and three hundred 73.6.
    found = {
        stated: accounted(replace(LOCAL, stated=stated), rounds=300).claim
        for stated in (3.0, 4.0, 74.0)
    }
    assert found == {3.0: "false", 4.0: "not confirmed", 74.0: "holds"}


def test_without_planned_rounds_and_an_end_nothing_is_known_but_what_was_spent() -> None:
    for stated, claim in ((3.0, "false"), (4.0, "not confirmed"), (1000.0, "not confirmed")):
        found = accounted(replace(LOCAL, stated=stated), has_ended=False)
        assert (found.claim, found.run.is_open) == (claim, True)
        assert found.doubt.startswith("the recording has 3 rounds and no mark of its end")
    assert accounted(replace(LOCAL, stated=4.0)).claim == "holds"


def test_a_run_that_goes_on_has_spent_its_rounds_so_far() -> None:
    found = accounted(LOCAL, so_far=5, rounds=300)
    assert (found.run.rounds_text, found.run.is_open) == ("5 rounds so far", True)


def test_more_rounds_than_planned_all_count() -> None:
    assert accounted(LOCAL, rounds=2).run.rounds == 3


@pytest.mark.parametrize(
    ("stated", "is_credited", "lower"),
    [
        ({}, False, 0.0),
        ({"sampling": "fixed"}, True, 0.0),
        ({"sampling": "poisson", "participation": 0.1}, True, inf),
        # Five rounds of the client that was asked most: mu = sqrt(5) * 2 / 4.
        ({"sampling": "none"}, False, closed_epsilon(5**0.5 / 2, 1e-5)),
    ],
    ids=["not stated", "fixed", "poisson", "none"],
)
def test_sampling_of_clients_counts_as_stated(
    stated: dict[str, object], is_credited: bool, lower: float
) -> None:
    found = accounted(replace(CENTRAL, stated=1.0), SOME, **stated)
    assert found.recomputed is not None
    assert (found.recomputed.subsampled is not None) == is_credited
    if lower == inf:
        assert 0.9 * upper(found) < found.recomputed.lower < upper(found)
    else:
        assert found.recomputed.lower == pytest.approx(lower)
    # All replies were asked for: sampling plays no part.
    alone = accounted(replace(CENTRAL, stated=1.0), replace(SOME, share=1.0))
    assert alone.recomputed is not None
    assert alone.recomputed.subsampled is None
    assert alone.recomputed.lower > 0


def test_a_simulation_has_the_sampling_of_its_protocol() -> None:
    drawn = replace(CENTRAL, is_drawn=True)
    facts = {"framework": "overheard", "participation": 0.1}
    usual = accounted(drawn, SOME, **facts)
    assert usual.run.sampling == "fixed"
    poisson = accounted(drawn, SOME, protocol="fedavg, sampling poisson", **facts)
    assert (poisson.run.sampling, poisson.run.sampling_rate) == ("poisson", 0.1)


DATASET = Digits().load(data_folder(None))


def partition_of(members: list[int], others: list[int]) -> DataPartition:
    """Return a partition with candidate records of these labels; one client has `members`."""
    labels = torch.tensor([*members, *others])
    records = Examples(torch.zeros(len(labels), 1), labels)
    rows = {client(0): tuple(range(len(members)))}
    return DataPartition(records, (), records, records, {}, candidates=records, members=rows)


def test_randomly_separated_records_are_exchangeable() -> None:
    assert are_exchangeable(Iid(), DATASET, partition_of([0, 1] * 20, [0, 1] * 100))


def test_a_split_with_different_clients_is_not_exchangeable() -> None:
    assert not are_exchangeable(
        Dirichlet(alpha=0.5), DATASET, partition_of([0, 1] * 20, [0, 1] * 100)
    )


def test_canaries_are_exchangeable_under_every_split() -> None:
    canaries = replace(partition_of([0, 1] * 40, [0] * 20 + [1] * 180), canary_odds=0.5)
    assert are_exchangeable(Dirichlet(alpha=0.5), DATASET, canaries)


def test_label_frequencies_that_differ_are_not_exchangeable() -> None:
    # 40 of each of two labels against 20 and 180: chi-squared is above 40.
    assert not are_exchangeable(Iid(), DATASET, partition_of([0, 1] * 40, [0] * 20 + [1] * 180))


def test_no_candidate_records_are_not_exchangeable() -> None:
    pool = partition_of([0], [1]).pool
    assert not are_exchangeable(Iid(), DATASET, DataPartition(pool, (), pool, pool, {}))


def test_several_examples_per_record_are_not_exchangeable() -> None:
    several = replace(DATASET, records=torch.arange(len(DATASET.train)) // 2)
    assert not are_exchangeable(Iid(), several, partition_of([0, 1] * 20, [0, 1] * 100))


def test_canaries_might_have_had_any_owner() -> None:
    canaries = replace(partition_of([0, 1], [0, 1]), canary_odds=0.5)
    assert record_exchange(ByUser(), DATASET, canaries) == "all"


def test_records_might_have_had_the_owner_of_another_of_their_label() -> None:
    assert record_exchange(Dirichlet(), DATASET, partition_of([0], [1])) == "same label"


def test_records_of_users_and_pieces_of_records_belong_together() -> None:
    assert record_exchange(ByUser(), DATASET, partition_of([0], [1])) == "none"
    pieces = replace(DATASET, records=torch.arange(len(DATASET.train)) // 2)
    assert record_exchange(Iid(), pieces, partition_of([0], [1])) == "none"
