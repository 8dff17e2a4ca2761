import math

import pytest

from overheard.plans.plan import parse_plan
from overheard_studies.reproduce import find_papers
from overheard_studies.study import Study

EVERY = [
    pytest.param(experiment, id=f"{name}/{key}")
    for name, paper in find_papers().items()
    for key, experiment in paper.studies().items()
]


def test_every_paper_has_a_title_and_a_source() -> None:
    for paper in find_papers().values():
        assert paper.title
        assert paper.source


@pytest.mark.parametrize("experiment", EVERY)
@pytest.mark.parametrize("quick", [False, True])
def test_every_experiment_has_plans_that_read_back_the_same(
    experiment: Study, quick: bool
) -> None:
    for name, plan in experiment.plans(quick=quick).items():
        assert parse_plan(plan.toml(), name) == plan


@pytest.mark.parametrize("experiment", EVERY)
def test_a_quick_run_is_a_smaller_one(experiment: Study) -> None:
    full, quick = experiment.plans(quick=False), experiment.plans(quick=True)
    # A quick run may leave out whole data sets.
    assert quick or experiment.measurements or experiment.reason_not_run
    for name, plan in quick.items():
        sizes = (len(plan.seeds), plan.training.rounds, plan.data.sizes[1])
        full_plan = full[name]
        full_sizes = (
            len(full_plan.seeds),
            full_plan.training.rounds,
            full_plan.data.sizes[1],
        )
        assert all(small <= large for small, large in zip(sizes, full_sizes, strict=True))
        assert math.prod(sizes) < math.prod(full_sizes)


@pytest.mark.parametrize("experiment", EVERY)
def test_every_experiment_describes_its_differences_in_one_paragraph(
    experiment: Study,
) -> None:
    assert experiment.title
    assert len(experiment.differences) > 100
    assert "\n" not in experiment.differences


def test_experiments_are_listed_by_their_names() -> None:
    for paper in find_papers().values():
        for key, experiment in paper.studies().items():
            assert experiment.name == key
