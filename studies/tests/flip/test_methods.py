from dataclasses import replace
from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.learning.distillation.methods.distribution_matching import DistributionMatching
from overheard.plans.plan import ArmPlan
from overheard_studies.flip.studies import (
    MATCHING,
    METHODS,
    TEN_PER_STEP,
    DistillationMethods,
    methods,
)
from overheard_studies.study import PAGE_FILE
from studies.tests.flip.test_accuracy import TINY

SCENARIO = replace(TINY, seeds=(0,), samples=(1,), flip_rounds=5, extra_arms=())
SMALL = DistillationMethods(
    SCENARIO,
    ArmPlan(
        name=TEN_PER_STEP, distillation=replace(TINY.flip, samples=1, at_once=10), rounds=5
    ),
    ArmPlan(
        name=MATCHING,
        distillation=DistributionMatching(samples=1, input_rate=0.3, passes=5),
        rounds=5,
    ),
)


@pytest.mark.slow
def test_methods_are_reported_by_accuracy_and_by_time(tmp_path: Path) -> None:
    experiment = methods((SMALL, SMALL))
    run = experiment.run(tmp_path, quick=True, resources=Resources(workers=1), on_step=None)
    by_name = {one.name: one for one in run}
    seconds = {key: by_name[f"{key}_seconds"].value for key in ("one_by_one", "together")}
    assert all(one is not None and one > 0 for one in seconds.values())
    for key in ("one_by_one", "together", "matching"):
        last, equal = (
            by_name[f"{key}_accuracy"].value,
            by_name[f"{key}_accuracy_at_equal_time"].value,
        )
        assert last is not None
        assert 0 < equal <= 1
    # No model reaches 0.95 after so few rounds.
    assert by_name["matching_seconds_to_95"].value is None
    assert "0 of 1 seeds" in by_name["matching_seconds_to_95"].setting
    page = (tmp_path / PAGE_FILE).read_text()
    assert "Accuracy by the time of distillation" in page


def test_all_methods_have_the_same_number_of_synthetic_examples() -> None:
    for quick in (True, False):
        (plan,) = methods().plans(quick=quick).values()
        assert [arm.name for arm in plan.arms] == ["FedAvg", *METHODS.values()]
        samples = {arm.distillation.samples for arm in plan.arms if arm.distillation}
        assert samples == {10}
