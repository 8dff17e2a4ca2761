from dataclasses import replace
from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard_studies.decaf.mechanism import cost, growing_rows
from overheard_studies.decaf.setting import DecafBenchmark

pytestmark = pytest.mark.slow

RESOURCES = Resources(engine="sequential")


def test_no_row_of_a_null_class_grows_behind_relu(
    tiny_benchmark: DecafBenchmark, tmp_path: Path
) -> None:
    run = growing_rows(tiny_benchmark).run(
        tmp_path, quick=True, resources=RESOURCES, on_step=None
    )
    values = {one.name: one.value for one in run}
    assert values["relu_other"] == values["relu_null"] == 0
    assert values["relu_own"] == values["relu_held"] == 1
    # Negative features let rows of null classes grow.
    assert (values["leaky_relu_other"] or 0) > 0
    assert values["leaky_0.001_null_recall"] is not None


def test_the_share_is_that_of_the_parts(tiny_benchmark: DecafBenchmark, tmp_path: Path) -> None:
    benchmark = replace(tiny_benchmark, examples=60)
    run = cost({"digits": (benchmark, (10.0, 1.0, 2.0, 3.0))}).run(
        tmp_path, quick=True, resources=RESOURCES, on_step=None
    )
    values = {one.name: one for one in run}
    assert values["digits_share"].published == pytest.approx(0.6)
    parts = [values[f"digits_{part}"].value or 0 for part in ("null_classes", "bases")]
    assert (
        0
        < sum(parts)
        < (values["digits_training"].value or 0) * (values["digits_share"].value or 0)
    )
