from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.data.splits.dirichlet import Dirichlet
from overheard_studies.whispers.setting import (
    Method,
    WhispersBenchmark,
    WhispersScenario,
)
from overheard_studies.whispers.studies import defended
from studies.tests.separate_arms import run_one_arm_then_all

pytest.importorskip("dp_accounting")


@pytest.mark.slow
def test_noise_makes_the_attack_and_the_model_worse(
    tiny: WhispersBenchmark, few_methods: tuple[Method, ...], tmp_path: Path
) -> None:
    scenario = WhispersScenario("digits", "Digits Dirichlet(1)", tiny, Dirichlet(1.0))
    experiment = defended(scenario, epsilons=(0.01, 40.0), methods=few_methods[:2])
    resources = Resources(engine="sequential", workers=1)
    run = run_one_arm_then_all(experiment, "epsilon 40", tmp_path, resources)
    values = {one.name: one for one in run}
    assert len(values) == len(run)
    # Noise of deviation 7.4 on weights of about 0.1 destroys both.
    assert values["no_defense_decaf_l1"].value < values["epsilon_0.01_decaf_l1"].value
    assert values["epsilon_0.01_accuracy"].value < values["no_defense_accuracy"].value
    assert values["epsilon_40_accuracy"].published == pytest.approx(0.8855)
    assert values["epsilon_40_decaf_l1"].published is None
    assert "noise of deviation 0.0019" in values["epsilon_40_decaf_l1"].setting


def test_all_clients_of_a_full_run_have_the_size_that_the_noise_assumes() -> None:
    plan = defended().plans(quick=False)["audit"]
    assert plan.data.sizes == (4000, 4000)
    assert plan.training.rounds == 10
    assert [arm.name for arm in plan.arms] == [
        "no defense", "epsilon 1", "epsilon 2", "epsilon 5", "epsilon 10", "epsilon 40",
    ]  # fmt: skip
