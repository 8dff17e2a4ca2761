"""An audit that lets a GPU round says how far that moves updates."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from overheard.auditing import rounding
from overheard.auditing.rounding import RoundingEffect, measure_rounding
from overheard.core.recipe import Recipe
from overheard.learning.train import train_cohort
from overheard.learning.training_job import ClientResult
from overheard.plans.plan import Plan
from tests.auditing.conftest import audit_here, inputs_for
from tests.auditing.plans import TINY


def rounded(precision: str | None) -> Plan:
    training = TINY.training.model_copy(update={"precision": precision})
    return TINY.model_copy(update={"training": training})


def training_on_a_gpu(*places: Any, device: str, **names: Any) -> Iterator[ClientResult]:
    """Train on the CPU; with TF32, updates are larger by a hundredth."""
    assert device == "cuda"
    recipe: Recipe = places[4]
    results: Sequence[ClientResult] = list(train_cohort(*places, **names, device="cpu"))
    factor = 1.01 if recipe.precision == "tf32" else 1.0
    for one in results:
        yield replace(one, delta={name: factor * part for name, part in one.delta.items()})


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounding, "has_gpu", lambda: True)
    monkeypatch.setattr(rounding, "train_cohort", training_on_a_gpu)


def on_any_device(plan: Plan) -> RoundingEffect | None:
    inputs = inputs_for(plan)
    return measure_rounding(replace(inputs, resources=replace(inputs.resources, device="auto")))


@pytest.mark.usefixtures("gpu")
def test_the_change_of_updates_is_measured_where_a_gpu_rounds() -> None:
    found = on_any_device(rounded("tf32"))
    assert found is not None
    assert found.change == pytest.approx(0.01, rel=1e-3)
    assert found.clients == 2
    assert found.speed > 0
    text = str(replace(found, speed=1.53))
    assert text == (
        "measured before the audit, tf32 changes the first updates of 2 clients by 0.01 of "
        "their size, at 1.5 times the speed of float32"
    )


@pytest.mark.usefixtures("gpu")
def test_nothing_is_measured_where_nothing_is_rounded() -> None:
    assert on_any_device(rounded(None)) is None
    assert measure_rounding(inputs_for(rounded("tf32"))) is None  # on the CPU


def test_nothing_is_measured_without_a_gpu() -> None:
    assert on_any_device(rounded("bf16")) is None


def test_the_description_of_an_audit_has_the_measured_change(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    effect = RoundingEffect("tf32", 1, 0.01, 2.0)
    monkeypatch.setattr("overheard.auditing.run.measure_rounding", lambda _: effect)
    # No run is trained, as only the subject is looked at.
    monkeypatch.setattr("overheard.auditing.run.judge", lambda subject, runs: subject)
    subject: Any = audit_here(rounded("tf32"), tmp_path)
    assert "in tf32 where a GPU computes" in subject.description
    assert subject.description.endswith(
        "of one client by 0.01 of their size, at 2 times the speed of float32"
    )
