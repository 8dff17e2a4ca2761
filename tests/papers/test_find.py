import pytest

from overheard.core.errors import PlanError
from overheard.papers.find import find_experiment


def test_finds_an_experiment_by_paper_and_name() -> None:
    assert find_experiment("decaf/table4").name == "table4"


@pytest.mark.parametrize("name", ["decaf", "decaf/table99", "decaf/"])
def test_names_the_experiments_that_there_are(name: str) -> None:
    with pytest.raises(PlanError, match="table3, table4"):
        find_experiment(name)


def test_names_the_papers_that_there_are() -> None:
    with pytest.raises(PlanError, match=r"'cookbook': there are .*decaf"):
        find_experiment("cookbook/table3")
