from dataclasses import replace
from pathlib import Path

import pytest
import torch

from overheard.auditing.inputs import Resources
from overheard.core.seeds import Seed
from overheard.linkage.known_updates import KnownUpdates
from overheard_studies.deanonymization.run_studies import (
    known_count,
    sample_per_user,
    select_counts,
)
from overheard_studies.deanonymization.setting import (
    IdentityScenario,
    build_known_user_settings,
    build_plan,
    build_published_attack,
    build_threat,
)


def test_each_user_has_the_given_number_of_updates_or_all() -> None:
    users = torch.tensor([0, 0, 0, 1, 2, 2])
    known = KnownUpdates(torch.zeros(6, 1), users, users, users, ("a", "b", "c"), 3)
    for seed in range(5):
        chosen = sample_per_user(known, 2, Seed(seed))
        assert users[chosen].bincount().tolist() == [2, 1, 2]


def test_counts_that_leave_no_update_out_are_dropped(
    tiny: IdentityScenario,
) -> None:
    scenario = replace(tiny, rounds=9, most_rounds=8)
    threats = (build_threat((build_published_attack(scenario, "simulated"),)),)
    run = build_plan(scenario, build_known_user_settings("random"), threats)
    assert select_counts(scenario, run, (1, 4, 8, 16)) == (1, 4)


@pytest.mark.slow
def test_all_updates_give_at_least_the_precision_of_one(
    tiny: IdentityScenario, resources: Resources, tmp_path: Path
) -> None:
    several = replace(tiny, seeds=(0, 1, 2))
    experiment = known_count((several,), (several,), (1, 2))
    run = experiment.run(tmp_path, quick=False, resources=resources, on_step=None)
    by_name = {one.name: one.value for one in run}
    one, all_updates = by_name["tiny_updates_1"], by_name["tiny_updates_all"]
    assert one is not None
    assert all_updates is not None
    assert 0.3 < one <= all_updates
