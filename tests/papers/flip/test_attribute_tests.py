"""The tests of a quadruple state what their outcomes depend on."""

from pathlib import Path

import pytest

from overheard.papers.flip import attribute_tests
from overheard.papers.flip.attribute import SCHEDULE, AttributeExperiment
from overheard.papers.flip.attribute_tests import AttributeTests
from overheard.papers.flip.published_numbers import read_attribute_rows
from overheard.papers.runs import ExperimentRuns


def test_outcomes_depend_on_the_plan_of_each_task_and_on_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = AttributeExperiment().plans(quick=True)
    quadruple = read_attribute_rows()[0].quadruple

    def origin(rounds: int) -> str:
        last = plans[quadruple.tasks[3].key]
        training = last.training.model_copy(update={"rounds": rounds})
        changed = last.model_copy(update={"training": training})
        runs = ExperimentRuns({}, {**plans, quadruple.tasks[3].key: changed}, tmp_path)
        arms = "FedAvg", "FLiP"
        return AttributeTests(runs, quadruple, arms, SCHEDULE).describe_origin()

    before = origin(10)
    assert origin(10) == before
    assert origin(11) != before
    monkeypatch.setattr(attribute_tests, "derived_code", lambda _plan, _module: "changed")
    assert origin(10) != before
