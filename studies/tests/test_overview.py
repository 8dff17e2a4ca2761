"""The page of all experiments lists each, and says which values were reproduced."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import OutputError
from overheard_studies.experiments import StoredExperiment, all_experiments
from overheard_studies.overview import compare_value, write_overview
from overheard_studies.reproduce import find_study
from overheard_studies.study import Study
from overheard_studies.values import ReproducedValue, StoredValues, write_values

TABLE = "decaf/table3"


def value(
    here: float | None,
    interval: tuple[float, float] | None,
    published: float | None,
    better: str | None = "lower",
    name: str = "l1",
) -> ReproducedValue:
    low, high = interval or (None, None)
    return ReproducedValue(name, "MNIST; server", here, low, high, published, better)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (value(0.2, (0.1, 0.3), 0.3), "reproduced"),
        (value(0.2, (0.1, 0.3), 0.31), "better here"),
        (value(0.2, (0.1, 0.3), 0.09), "worse here"),
        (value(0.2, (0.1, 0.3), 0.31, "higher"), "worse here"),
        (value(0.2, (0.1, 0.3), 0.09, "higher"), "better here"),
        (value(0.2, (0.1, 0.3), 0.09, None), "differs"),
        (value(None, None, 0.1), "not measured"),
        (value(0.2, (0.1, 0.3), None), "not published"),
        (value(0.2, None, 0.2), "no interval"),
    ],
)
def test_compares_a_value_with_the_published_one(one: ReproducedValue, expected: str):
    assert compare_value(one, quick=False) == expected


@given(st.floats(-9, 9), st.floats(0.01, 2), st.floats(-9, 9))
def test_a_value_of_a_reduced_size_is_never_compared(
    here: float, half: float, published: float
):
    one = value(here, (here - half, here + half), published)
    assert compare_value(one, quick=True) == "reduced size"


def write(folder: Path, *values: ReproducedValue, quick: bool = False) -> None:
    folder.mkdir()
    differences = find_study(TABLE).differences
    write_values(StoredValues("table3", quick, differences, values), folder)


def test_the_page_lists_every_experiment_and_draws_those_that_were_run(tmp_path: Path):
    write(
        tmp_path / "decaf-table3",
        value(0.2, (0.1, 0.3), 0.25),
        value(0.2, (0.1, 0.3), 0.31, name="<script>alert(1)</script>"),
    )
    (tmp_path / "decaf-table3" / "figures.html").touch()
    path = write_overview(tmp_path)
    page = path.read_text()
    assert path == tmp_path / "index.html"
    for name, _ in all_experiments():
        assert name in page
    assert page.count("<bdi>not run") >= len(list(all_experiments())) - 1
    assert page.count("<svg") == 1
    assert 'href="decaf-table3/figures.html"' in page
    assert "better here" in page
    assert "<script>alert" not in page


WHOLE = (value(0.2, (0.1, 0.3), 0.25),)
PART = (*WHOLE, value(None, None, None, None, name="audit_epsilon_1_not_measured"))


@pytest.mark.parametrize(
    ("fields", "values", "quick", "size"),
    [
        ({}, WHOLE, False, "own size"),
        ({"is_paper_size": True}, WHOLE, False, "full"),
        ({"is_paper_size": True}, WHOLE, True, "reduced"),
        ({"is_paper_size": True}, PART, False, "part"),
        ({"hours": 2.5}, PART, False, "part; not run: 2.5 core hours"),
        ({"hours": 2.5}, WHOLE, False, "own size"),
        ({"hours": 2.5}, None, False, "not run: 2.5 core hours"),
        ({}, None, False, "not run"),
        ({"reason_not_run": "no photos"}, None, False, "cannot be run here: no photos"),
    ],
)
def test_only_the_size_of_the_paper_is_full(
    fields: dict[str, object],
    values: tuple[ReproducedValue, ...] | None,
    quick: bool,
    size: str,
):
    study = Study("table3", "A table", "None.", **fields)
    stored = None if values is None else StoredValues("table3", quick, "", values)
    assert StoredExperiment("decaf/table3", study, stored).size == size


def test_a_full_run_counts_before_a_reduced_one(tmp_path: Path):
    write(tmp_path / "decaf-table3-quick", value(0.9, (0.8, 1.0), 0.25), quick=True)
    page = write_overview(tmp_path).read_text()
    assert "reduced size" in page
    assert "figures.html" not in page
    (tmp_path / "decaf-table3-quick" / "figures.html").touch()
    assert 'href="decaf-table3-quick/figures.html"' in write_overview(tmp_path).read_text()
    write(tmp_path / "decaf-table3", value(0.2, (0.1, 0.3), 0.25))
    page = write_overview(tmp_path).read_text()
    assert "decaf-table3-quick" not in page


def test_damaged_values_are_refused(tmp_path: Path):
    (tmp_path / "decaf-table3").mkdir()
    (tmp_path / "decaf-table3" / "figures.json").write_text("[{}]")
    with pytest.raises(OutputError, match="missing or damaged"):
        write_overview(tmp_path)
