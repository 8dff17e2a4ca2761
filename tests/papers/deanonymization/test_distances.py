from pathlib import Path

import pytest
import torch

from overheard.auditing.supplies import Resources
from overheard.core.seeds import Seed
from overheard.papers.deanonymization.distances import DistancesExperiment, distances
from overheard.papers.deanonymization.world import IdentityScenario


def test_two_users_on_opposite_sides_are_near_to_themselves_and_far_from_each_other() -> None:
    features = torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]])
    told = distances(features, torch.tensor([0, 0, 1, 1]), Seed(0))
    assert told.within.tolist() == [0, 0]
    assert told.across.tolist() == pytest.approx([2, 2])


def test_a_user_with_one_example_has_no_distance_to_itself() -> None:
    told = distances(torch.eye(3), torch.tensor([0, 0, 1]), Seed(0))
    # Only user 0: the square root of 2 to itself and to the other.
    assert told.within.tolist() == pytest.approx([2**0.5])
    assert len(told.across) == 1


@pytest.mark.slow
def test_users_with_habits_lie_above_the_diagonal_and_dealt_anew_on_both_sides(
    tiny: IdentityScenario, resources: Resources, tmp_path: Path
) -> None:
    experiment = DistancesExperiment((tiny,), (tiny,))
    run = experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    told = {one.name: one.ours for one in run}
    own, dealt = told["tiny_above_diagonal"], told["tiny_dealt_anew_above_diagonal"]
    assert own is not None
    assert dealt is not None
    assert own > 0.8
    assert dealt < own
    assert "<svg" in (tmp_path / "figures.html").read_text(encoding="utf-8")
