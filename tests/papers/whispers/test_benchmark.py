import os
from pathlib import Path

import pytest

from overheard.auditing.supplies import Resources, deal_examples, load_data
from overheard.papers.whispers.benchmark import AG_NEWS, FASHION_MNIST, FER2013, MNIST
from overheard.papers.whispers.plans import plan
from overheard.papers.whispers.scenario import Scenario, alike, few_labels, uneven

BENCHMARKS = (MNIST, FASHION_MNIST, FER2013, AG_NEWS)
SCARCE = (few_labels(FER2013), uneven(FER2013)[0], few_labels(AG_NEWS), alike(AG_NEWS))
"""Those of the small data sets that ask for most of one class."""


@pytest.mark.parametrize("one", BENCHMARKS, ids=lambda one: one.key)
def test_clients_take_as_many_steps_in_a_hurry_as_at_leisure(one) -> None:
    for size in (one.full, one.reduced):
        steps = [-(-examples // size.batch) for examples in size.examples]
        assert 10 <= steps[0] <= steps[1] <= 40


@pytest.mark.parametrize("one", BENCHMARKS, ids=lambda one: one.key)
def test_in_a_hurry_nothing_is_larger_and_the_federation_has_as_many_clients(one) -> None:
    full, less = one.full, one.reduced
    assert (less.clients, less.rate, less.test) == (full.clients, full.rate, full.test)
    assert less.source.name == full.source.name
    assert less.auxiliary <= full.auxiliary
    assert max(less.examples) < max(full.examples)
    assert (less.rounds, less.virtual, less.seeds) == (3, 240, (0,))


def test_image_clients_are_as_large_and_as_many_as_the_paper_says() -> None:
    for one in (MNIST, FASHION_MNIST):
        assert one.full.examples == (3000, 5000)
        assert one.full.virtual == 1200


@pytest.mark.skipif("OVERHEARD_DATA" not in os.environ, reason="needs the data sets")
@pytest.mark.parametrize("one", SCARCE, ids=lambda one: one.name)
def test_small_data_sets_can_be_dealt_out_at_full_size(one: Scenario) -> None:
    size = one.benchmark.full
    run = plan(one, size, quick=False)
    dataset = load_data(run, Resources(Path(os.environ["OVERHEARD_DATA"])))
    dealt = deal_examples(run, dataset, run.seeds[0])
    smallest, largest = size.examples
    assert all(smallest <= len(rows) <= largest for rows in dealt.rows[0])
