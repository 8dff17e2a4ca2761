import pytest

from overheard.core.errors import PlanError
from overheard_studies.reproduce import find_study


def test_finds_an_experiment_by_paper_and_name() -> None:
    assert find_study("decaf/table4").name == "table4"


@pytest.mark.parametrize("name", ["decaf", "decaf/table99", "decaf/"])
def test_an_unknown_experiment_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(PlanError, match="table3, table4"):
        find_study(name)


def test_an_unknown_paper_is_refused_with_the_known_ones() -> None:
    with pytest.raises(PlanError, match=r"'cookbook'; known papers: .*decaf"):
        find_study("cookbook/table3")
