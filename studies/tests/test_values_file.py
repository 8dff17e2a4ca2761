import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import OutputError
from overheard_studies.how_run import CHECKOUT, HowRun
from overheard_studies.pages.experiment_page import PaperStatement
from overheard_studies.values import ReproducedValue, StoredValues, load_values, write_values

VALUES = (
    ReproducedValue("mean_l1", "MNIST", 0.18, 0.17, 0.19, 0.185, "lower"),
    ReproducedValue("null_recall", "MNIST", 1.0, None, None, None, "higher"),
    ReproducedValue("fer2013_not_measured", "no data", None, None, None, None, None),
)
STORED = StoredValues("table3", True, "The data are ours.", VALUES)


def test_values_read_back_as_they_were_written(tmp_path: Path) -> None:
    write_values(STORED, tmp_path)
    assert load_values(tmp_path) == STORED


def test_how_it_was_run_and_what_follows_read_back(tmp_path: Path) -> None:
    how_run = HowRun("0" * 40, "2026-11-27", (0, 1), "1 of 2 audits", "cpu, float32", None)
    statement = PaperStatement("it", "It leaks.", "yes", "0.5 (0.4 to 0.6)", "above 0")
    stored = replace(STORED, how_run=how_run, conclusions=(statement,))
    write_values(stored, tmp_path)
    assert load_values(tmp_path) == stored


def test_every_stored_file_of_the_checkout_loads() -> None:
    for path in (CHECKOUT / "studies" / "reproduced").glob("*/figures.json"):
        assert load_values(path.parent).values


def test_the_file_has_the_setting_once_and_an_entry_per_value(tmp_path: Path) -> None:
    path = write_values(STORED, tmp_path)
    content = json.loads(path.read_text())
    first, second, _ = content.pop("values")
    assert path.name == "figures.json"
    assert content == {
        "experiment": "table3",
        "quick": True,
        "differences": "The data are ours.",
    }
    assert first == {
        "name": "mean_l1",
        "setting": "MNIST",
        "ours": 0.18,
        "low": 0.17,
        "high": 0.19,
        "published": 0.185,
        "better": "lower",
    }
    assert second["published"] is None


@pytest.mark.parametrize("content", [None, "[", '[{"name": "mean_l1"}]', '{"values": []}'])
def test_refuses_a_missing_or_damaged_file(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "figures.json").write_text(content)
    with pytest.raises(OutputError, match=r"figures\.json: the file is missing or damaged"):
        load_values(tmp_path)


@pytest.mark.parametrize("spoiled", ["NaN", "1e400", "-Infinity"])
@pytest.mark.parametrize("number", ["0.18", "0.17", "0.19", "0.185"])
def test_refuses_a_number_that_is_not_finite(tmp_path: Path, number: str, spoiled: str) -> None:
    path = write_values(STORED, tmp_path)
    path.write_text(path.read_text().replace(f": {number},", f": {spoiled},"))
    with pytest.raises(OutputError, match=r"figures\.json: the file is missing or damaged"):
        load_values(tmp_path)


@pytest.mark.parametrize("spoiled", ["NaN", "1e400", "-1.0"])
def test_refuses_core_seconds_that_cannot_be(tmp_path: Path, spoiled: str) -> None:
    how_run = HowRun("0" * 40, "2026-11-27", (0, 1), "1 of 2 audits", "cpu, float32", 7.25)
    path = write_values(replace(STORED, how_run=how_run), tmp_path)
    path.write_text(path.read_text().replace("7.25", spoiled))
    with pytest.raises(OutputError, match=r"figures\.json: the file is missing or damaged"):
        load_values(tmp_path)


@given(
    st.floats(-1000.0, 1000.0, allow_subnormal=False), st.floats(1e-4, 1000.0), st.floats(0, 1)
)
def test_the_shown_ends_of_an_interval_differ(low: float, width: float, part: float) -> None:
    value = low + part * width
    shown, interval, _ = ReproducedValue("a", "", value, low, low + width, None, None).texts
    least, most = (float(one.replace("−", "-")) for one in interval.split(" to "))
    assert least < most
    # Rounded at most at the second digit of the width.
    assert abs(least - low) <= 0.05 * width
    assert abs(float(shown.replace("−", "-")) - value) <= 0.05 * width


def test_a_value_without_an_interval_is_shown_alone() -> None:
    assert VALUES[1].texts == ("1.0", "–", "–")
    assert VALUES[2].texts == ("–", "–", "–")
    nothing = ReproducedValue(
        "a", "", 0.5, float("nan"), float("nan"), 0.46880000000000005, None
    )
    assert nothing.texts == ("0.50", "–", "0.4688")
    tiny = ReproducedValue("a", "", 1.4e-6, 1e-6, 2e-6, None, None)
    assert tiny.texts == ("1.4e-06", "1e-06 to 2e-06", "–")
    spoiled = ReproducedValue("a", "", float("nan"), 0.1, 0.2, float("inf"), None)
    assert spoiled.texts == ("–", "0.10 to 0.20", "–")
    reversed_ends = ReproducedValue("a", "", 0.15, 0.2, 0.1, None, None)
    assert reversed_ends.texts == ("0.15", "0.20 to 0.10", "–")
