"""What takes minutes is measured once for an origin, and kept exactly."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter

from overheard_studies.cached import load_or_measure

ADAPTER = TypeAdapter(tuple[str, tuple[dict[int, float], ...]])

MEASURED = ({0: 1.5, 5: 0.1 + 0.2}, {})


def refuse() -> tuple[dict[int, float], ...]:
    raise AssertionError("measured again")


def test_a_measurement_reads_back_exactly(tmp_path: Path) -> None:
    path = tmp_path / "series.json"
    assert load_or_measure(path, "seeds = [0]", ADAPTER, lambda: MEASURED) == MEASURED
    assert load_or_measure(path, "seeds = [0]", ADAPTER, refuse) == MEASURED


def test_another_origin_is_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "series.json"
    load_or_measure(path, "seeds = [0]", ADAPTER, lambda: MEASURED)
    assert load_or_measure(path, "seeds = [0, 1]", ADAPTER, lambda: ({},)) == ({},)
    assert load_or_measure(path, "seeds = [0, 1]", ADAPTER, refuse) == ({},)


@pytest.mark.parametrize("content", ["[{", "[]", '["seeds = [0]", [{"a": 1}]]'])
def test_a_file_of_another_form_counts_as_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "series.json"
    path.write_text(content, encoding="utf-8")
    assert load_or_measure(path, "seeds = [0]", ADAPTER, lambda: MEASURED) == MEASURED
