"""`make gpu-check` finds a GPU whose updates differ from the CPU's."""

from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from overheard.core.recipe import PrivateSteps, Recipe
from overheard.learning.models.mlp import Mlp

FOLDER = Path(__file__).parent.parent / "benchmarks" / "gpu"


@pytest.fixture
def equality(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    found = import_module("equality")
    build = partial(Mlp(hidden=(4,)).build, found.TABLE)
    pool = found._pool(found.TABLE, 32)
    recipe = Recipe(rate=0.1, epochs=1, batch=8)
    private = replace(recipe, private_steps=PrivateSteps(1.0, 1.0, 2, "poisson"))
    recipes = {"mlp": recipe, "mlp, DP-SGD": private}
    cases = {name: found.Case(build, pool, one, 16) for name, one in recipes.items()}
    monkeypatch.setattr(found, "cases", lambda: cases)
    return found


def test_equal_updates_are_no_fault(equality: ModuleType) -> None:
    found, missed = equality.compare_all("cpu")
    assert missed == []
    row = found["rows"]["mlp, auto"]
    assert row["float64"] < 1e-9
    assert row["float32"] < 1e-4
    assert row["two runs"] == "equal"
    assert set(row) <= set(found["columns"])
    assert {"defenses", "noise of DP-SGD"} <= found["rows"].keys()


def test_updates_that_differ_are_named(
    equality: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, number = equality.train_cohort, iter(range(1000))

    def train_otherwise(*places, device, **names):
        factor = 1 + (1e-3 * next(number) if device == "other" else 0)
        for one in train(*places, device="cpu", **names):
            delta = {name: factor * part for name, part in one.delta.items()}
            yield type(one)(one.client, delta, one.loss)

    monkeypatch.setattr(equality, "train_cohort", train_otherwise)
    monkeypatch.setattr(equality, "_defenses", lambda device: {"float32": float("nan")})
    _, missed = equality.compare_all("other")
    assert {one.split(":")[0] for one in missed} >= {
        "mlp, auto, float32",
        "mlp, DP-SGD, auto, float32",
        "mlp, auto, two runs",
        "defenses, float32",
    }
