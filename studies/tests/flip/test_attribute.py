from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from overheard.auditing.inputs import Resources
from overheard.data.datasets.cifar10 import Cifar10
from overheard.learning.fitting.share_network import FitSchedule
from overheard.learning.models.logistic import Logistic
from overheard.plans.plan import parse_plan
from overheard_studies.flip.attribute import REDUCED, attribute
from overheard_studies.flip.attribute_tests import AFFINITY, TESTS
from overheard_studies.values import ReproducedValue
from studies.tests.flip.planted import plant

pytestmark = pytest.mark.slow

TINY = replace(
    REDUCED,
    source=Cifar10(shrink=8),
    model=Logistic(),
    examples=24,
    rounds=4,
    flip=replace(REDUCED.flip, batch=24, first_rate=0.1, rate_rate=0.01, halve_every=0),
    flip_rounds=5,
    samples=(2,),
    seeds=(0, 1),
)

EXPERIMENT = attribute(
    (TINY, TINY),
    ((1,), (1,)),
    auxiliary=40,
    schedule=FitSchedule(epochs=10, batch=16),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("table2")


def run(folder: Path) -> Mapping[str, ReproducedValue]:
    values = EXPERIMENT.run(
        folder / "run",
        quick=True,
        resources=Resources(data=folder / "data", workers=1),
        on_step=None,
    )
    return {one.name: one for one in values}


@pytest.fixture(scope="module")
def values(folder: Path) -> Mapping[str, ReproducedValue]:
    plant(folder / "data")
    return run(folder)


def test_the_affinity_attack_identifies_the_class_in_both_arms(
    values: Mapping[str, ReproducedValue],
) -> None:
    for arm in ("fedavg", "flip"):
        value = values[f"row1_{AFFINITY.format(arm)}"]
        # Two federations with two seeds, one trial each, all right.
        assert value.value == 1.0
        assert value.low == pytest.approx(0.025**0.25)


def test_raw_images_of_b_reveal_it_and_all_images_half_as_much(
    values: Mapping[str, ReproducedValue],
) -> None:
    only_b, all_images = values["row1_images_of_b"].value, values["row1_images"].value
    assert only_b is not None
    assert all_images is not None
    assert only_b > 0.9
    # Half are images of A2, and any decision about them is right in one of the two
    # federations. They are therefore right in half of the cases with every seed.
    assert all_images == pytest.approx((only_b + 0.5) / 2, abs=0.1)


def test_every_test_has_a_value_for_the_row_and_for_all_rows(
    values: Mapping[str, ReproducedValue],
) -> None:
    for test in TESTS:
        # There is only one row.
        one, pooled = values[f"row1_{test}"], values[f"all_{test}"]
        assert one.value is not None
        assert pooled.value == pytest.approx(one.value)
    learned = values["task_horse_automobile_flip"]
    assert learned.published == pytest.approx(0.9505)
    assert learned.value is not None
    assert learned.value > 0.8


def test_rows_of_cifar100_are_reported_as_not_run(
    values: Mapping[str, ReproducedValue],
) -> None:
    missing = [one for one in values.values() if "not run" in one.setting]
    assert len(missing) == 6
    assert all(one.value is None and one.published is not None for one in missing)


def test_the_page_draws_the_row_and_outcomes_are_cached(
    values: Mapping[str, ReproducedValue], folder: Path
) -> None:
    page = (folder / "run" / "figures.html").read_text(encoding="utf-8")
    assert "row 1: horse and frog against automobile or cat" in page
    assert "hardly contain" in page
    cache = folder / "run" / "answers" / "row1-seed0.json"
    text = cache.read_text(encoding="utf-8")
    # Cached outcomes are reused and not computed again.
    cache.write_text(text.replace('"hits":', '"hits" :'), encoding="utf-8")
    assert run(folder) == values
    assert '"hits" :' in cache.read_text(encoding="utf-8")


def test_a_task_that_several_rows_share_is_trained_once() -> None:
    # Three rows of four tasks each.
    for quick in (True, False):
        assert len(attribute().plans(quick=quick)) == 6


def test_the_classes_of_a_plan_survive_a_file() -> None:
    plan = attribute().plans(quick=False)["horse-cat"]
    source = parse_plan(plan.toml(), "here").data.source
    assert source == Cifar10(only=("cat", "horse"), shrink=2)
