import os
from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources, load_data, partition_for_plan
from overheard_studies.whispers.setting import (
    AG_NEWS,
    FASHION_MNIST,
    FER2013,
    MNIST,
    WhispersScenario,
    build_plan,
    dirichlet_scenarios,
    few_labels_scenario,
    iid_scenario,
)

BENCHMARKS = (MNIST, FASHION_MNIST, FER2013, AG_NEWS)
LARGE_CLASS_DEMANDS = (
    few_labels_scenario(FER2013),
    dirichlet_scenarios(FER2013)[0],
    few_labels_scenario(AG_NEWS),
    iid_scenario(AG_NEWS),
)
"""Scenarios of small data sets that need the most examples of one class."""


@pytest.mark.parametrize("one", BENCHMARKS, ids=lambda one: one.key)
def test_clients_take_10_to_40_steps_in_quick_and_full_runs(one) -> None:
    for size in (one.full, one.reduced):
        steps = [-(-examples // size.batch) for examples in size.examples]
        assert 10 <= steps[0] <= steps[1] <= 40


@pytest.mark.parametrize("one", BENCHMARKS, ids=lambda one: one.key)
def test_a_quick_run_is_smaller_with_the_same_number_of_clients(one) -> None:
    full, quick = one.full, one.reduced
    assert (quick.clients, quick.rate, quick.test) == (full.clients, full.rate, full.test)
    assert quick.source.name == full.source.name
    assert quick.auxiliary <= full.auxiliary
    assert max(quick.examples) < max(full.examples)
    assert (quick.rounds, quick.virtual, quick.seeds) == (3, 240, (0,))


def test_image_clients_have_the_papers_sizes_and_number() -> None:
    for one in (MNIST, FASHION_MNIST):
        assert one.full.examples == (3000, 5000)
        assert one.full.virtual == 1200


@pytest.mark.skipif("OVERHEARD_DATA" not in os.environ, reason="needs the data sets")
@pytest.mark.parametrize("one", LARGE_CLASS_DEMANDS, ids=lambda one: one.name)
def test_small_data_sets_can_be_partitioned_at_full_size(one: WhispersScenario) -> None:
    size = one.benchmark.full
    run = build_plan(one, size, quick=False)
    dataset = load_data(run, Resources(Path(os.environ["OVERHEARD_DATA"])))
    partition = partition_for_plan(run, dataset, run.seeds[0])
    smallest, largest = size.examples
    assert all(smallest <= len(rows) <= largest for rows in partition.rows[0])
