"""The tests of a quadruple state what their outcomes depend on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import overheard_studies.flip.attribute as module
from overheard.auditing.folder import AuditFolder
from overheard.findings.audit import Audit
from overheard_studies import runs as studied
from overheard_studies.flip.attribute import (
    SCHEDULE,
    attribute,
    find_outcomes,
    read_attribute_rows,
)
from overheard_studies.flip.attribute_tests import TESTS, AttributeTests, QuadrupleOutcome
from overheard_studies.runs import StudyRuns


def test_outcomes_depend_on_the_plan_of_each_task_its_runs_and_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = list[int]()

    def run_tests(tests: AttributeTests, seed: int) -> Iterator[QuadrupleOutcome]:
        answered.append(seed)
        yield from (QuadrupleOutcome(test, "frog-cat", seed, 2, 2) for test in TESTS)

    monkeypatch.setattr(AttributeTests, "run_tests", run_tests)
    experiment, row = attribute(), read_attribute_rows()[0]
    plans, last = experiment.plans(quick=True), row.quadruple.tasks[3].key

    def answer(rounds: int) -> int:
        """Return how often the tests have been run after answering with these rounds."""
        training = plans[last].training.model_copy(update={"rounds": rounds})
        changed = plans[last].model_copy(update={"training": training})
        find_outcomes(row, StudyRuns({}, {**plans, last: changed}, tmp_path), SCHEDULE)
        return len(answered)

    seeds = len(plans[last].seeds)
    assert [answer(10), answer(10), answer(11)] == [seeds, seeds, 2 * seeds]
    monkeypatch.setattr(studied, "code_digest", lambda _modules, _plugins: "changed")
    assert answer(11) == 3 * seeds
    arm, seed = plans[last].arms[0].name, plans[last].seeds[0]
    run = AuditFolder(tmp_path / last).run_path(arm, seed)
    run.mkdir(parents=True)
    for number, data in enumerate(("one", "other")):
        (run / "origin.json").write_text(data)
        assert [answer(11), answer(11)] == [(4 + number) * seeds] * 2


@pytest.mark.parametrize(
    ("seeds", "expected"),
    [((0, 1), "seeds 0 (changed"), ((1,), None), ((0,), "seeds 0 (changed")],
)
def test_a_row_is_tested_with_the_seeds_that_all_its_tasks_have(
    seeds: tuple[int, ...],
    expected: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run_tests(tests: AttributeTests, seed: int) -> Iterator[QuadrupleOutcome]:
        assert {tests.runs.plans[task.key].seeds for task in tests.quadruple.tasks} == {(0,)}
        yield from (QuadrupleOutcome(test, "frog-cat", seed, 2, 2) for test in TESTS)

    monkeypatch.setattr(AttributeTests, "run_tests", run_tests)
    monkeypatch.setattr(module, "_accuracies", lambda *_: [])
    experiment = attribute()
    keys = [task.key for task in read_attribute_rows()[0].quadruple.tasks]
    some_plans = experiment.plans(quick=True)
    plans = {
        key: some_plans[key].model_copy(update={"seeds": seeds if key == keys[0] else (0,)})
        for key in keys
    }
    audits = {
        key: Audit("", "", (), (), (), (), plan.toml(), {}) for key, plan in plans.items()
    }
    values = experiment.read_values(StudyRuns(audits, plans, tmp_path))
    found = [one for one in values if one.name == "row1_samples"]
    assert len(found) == (expected is not None)
    for one in found:
        assert str(expected) in one.setting
        assert one.value == 1.0
