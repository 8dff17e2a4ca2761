from pathlib import Path

import pytest
import torch

from overheard.auditing.inputs import Resources
from overheard.core.seeds import Seed
from overheard_studies.deanonymization.setting import IdentityScenario
from overheard_studies.deanonymization.variation import distances, measure_distances


def test_two_opposite_users_are_close_to_themselves_and_far_from_each_other() -> None:
    features = torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]])
    measured = measure_distances(features, torch.tensor([0, 0, 1, 1]), Seed(0))
    assert measured.within.tolist() == [0, 0]
    assert measured.across.tolist() == pytest.approx([2, 2])


def test_a_user_with_one_example_is_left_out() -> None:
    measured = measure_distances(torch.eye(3), torch.tensor([0, 0, 1]), Seed(0))
    # Only user 0 has a distance: the square root of 2 to itself and to the other user.
    assert measured.within.tolist() == pytest.approx([2**0.5])
    assert len(measured.across) == 1


@pytest.mark.slow
def test_distinct_users_are_above_the_diagonal_and_permuted_ones_less_often(
    tiny: IdentityScenario, resources: Resources, tmp_path: Path
) -> None:
    experiment = distances((tiny,), (tiny,))
    run = experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    by_name = {one.name: one.value for one in run}
    original, permuted = (
        by_name["tiny_above_diagonal"],
        by_name["tiny_dealt_anew_above_diagonal"],
    )
    assert original is not None
    assert permuted is not None
    assert original > 0.8
    assert permuted < original
    assert "<svg" in (tmp_path / "figures.html").read_text(encoding="utf-8")
