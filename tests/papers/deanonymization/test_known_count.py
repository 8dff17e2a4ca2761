from dataclasses import replace
from pathlib import Path

import pytest
import torch

from overheard.auditing.supplies import Resources
from overheard.core.seeds import Seed
from overheard.linkage.prior_updates import KnownUpdates
from overheard.papers.deanonymization.identifiers import published
from overheard.papers.deanonymization.known_count import (
    KnownCountExperiment,
    counts_of,
    some_of_each,
)
from overheard.papers.deanonymization.plans import every_sender, people, plan
from overheard.papers.deanonymization.world import IdentityScenario


def test_each_user_has_so_many_updates_or_all_that_there_are() -> None:
    people = torch.tensor([0, 0, 0, 1, 2, 2])
    known = KnownUpdates(torch.zeros(6, 1), people, people, people, ("a", "b", "c"), 3)
    for seed in range(5):
        chosen = some_of_each(known, 2, Seed(seed))
        assert people[chosen].bincount().tolist() == [2, 1, 2]


def test_numbers_that_leave_no_update_out_are_not_told_beside_all(
    tiny: IdentityScenario,
) -> None:
    world = replace(tiny, rounds=9, most_rounds=8)
    threats = (every_sender((published(world, "simulated"),)),)
    run = plan(world, people("random"), threats)
    assert counts_of(world, run, (1, 4, 8, 16)) == (1, 4)


@pytest.mark.slow
def test_all_updates_tell_no_less_than_one(
    tiny: IdentityScenario, resources: Resources, tmp_path: Path
) -> None:
    experiment = KnownCountExperiment((tiny,), (tiny,), (1, 2), steps=400)
    run = experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    told = {one.name: one.ours for one in run}
    one, every = told["tiny_updates_1"], told["tiny_updates_all"]
    assert one is not None
    assert every is not None
    assert 0.3 < one <= every
