from pathlib import Path

import pytest
import torch

from overheard.auditing.inputs import Resources
from overheard_studies.deanonymization.setting import IdentityScenario
from overheard_studies.deanonymization.variation import UserBiases, bias


def test_proportional_biases_correlate_and_reversed_ones_anticorrelate() -> None:
    prior = torch.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]).double()
    correlations = UserBiases(("a", "b"), prior, 2 * prior).correlations()
    assert correlations.flatten().tolist() == pytest.approx([1, -1, -1, 1])


@pytest.mark.slow
def test_own_biases_correlate_more_than_those_of_others_and_are_drawn(
    tiny: IdentityScenario, resources: Resources, tmp_path: Path
) -> None:
    experiment = bias((tiny,), (tiny,))
    run = experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    by_name = {one.name: one.value for one in run}
    own_value, other = by_name["tiny_own_correlation"], by_name["tiny_other_correlation"]
    assert own_value is not None
    assert other is not None
    # Each label is preferred by four of the twelve users.
    assert own_value > other
    page = (tmp_path / "figures.html").read_text(encoding="utf-8")
    assert page.count('role="img"') + page.count('class="keys"') == 2
    assert "label 0" in page
