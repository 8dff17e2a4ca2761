from pathlib import Path

import pytest
import torch

from overheard.auditing.supplies import Resources
from overheard.papers.deanonymization.bias import Biases, BiasExperiment
from overheard.papers.deanonymization.world import IdentityScenario


def test_biases_that_differ_by_a_factor_are_the_same_and_opposite_ones_are_not() -> None:
    prior = torch.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]).double()
    alike = Biases(("a", "b"), prior, 2 * prior).alike()
    assert alike.flatten().tolist() == pytest.approx([1, -1, -1, 1])


@pytest.mark.slow
def test_correlations_of_own_and_of_other_biases_are_told_and_drawn(
    tiny: IdentityScenario, resources: Resources, tmp_path: Path
) -> None:
    experiment = BiasExperiment((tiny,), (tiny,))
    run = experiment.run(tmp_path, quick=True, resources=resources, on_step=None)
    told = {one.name: one.ours for one in run}
    own, other = told["tiny_own_correlation"], told["tiny_other_correlation"]
    assert own is not None
    assert other is not None
    # Four users in twelve like each label.
    assert own > other
    page = (tmp_path / "figures.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2
    assert "label 0" in page
