"""Canaries of the example app lead from `overheard canaries --flower .` to a bound."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

pytest.importorskip("flwr", reason="the extra flower is not installed")
from tests.apps.simulate import CLIENTS
from tests.recorders.test_apps import OVERHEARD, run

pytestmark = pytest.mark.deployment

ROOT = Path(__file__).parents[2]

FIRST_SPARE = 1497
"""The first of scikit-learn's digits that no client of the app holds."""


def test_the_commands_of_the_page_lead_from_an_app_to_what_canaries_prove(
    tmp_path: Path,
) -> None:
    app = tmp_path / "app"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "examples" / "flower", app, ignore=ignored)
    settings = app / "pyproject.toml"
    text = settings.read_text()
    for default, wanted in (
        ('recording = ""', 'recording = "recording"'),
        ('canaries = ""', 'canaries = "drawn"'),
        ("rounds = 5", "rounds = 2"),
        ("epochs = 2", "epochs = 10"),
    ):
        assert default in text
        text = text.replace(default, wanted)
    settings.write_text(text)
    digits = load_digits()
    images = digits.images[FIRST_SPARE:, None].astype(np.float32) / 16
    np.savez(app / "spare.npz", x=images, y=digits.target[FIRST_SPARE:])
    drawing = ("--data", "spare.npz", "--clients", str(CLIENTS), "--out", "drawn")
    said = run(app, *OVERHEARD, "canaries", "--flower", ".", *drawing)
    assert "Network: digits_app.task:build." in said
    assert "Numbers in x are standardised" in said
    for next_step in ("  cp drawn/truth.json RECORDING/", "audit drawn/plan.toml"):
        assert next_step in said

    simulate = "from pathlib import Path; from tests.apps.simulate import simulate; "
    run(app, sys.executable, "-c", simulate + f"simulate(Path({str(app)!r}))")
    shutil.copy(app / "drawn" / "truth.json", app / "recording")
    audit = ("audit", "drawn/plan.toml", "--transcript", "recording", "--out", "audit")
    run(app, *OVERHEARD, *audit)

    found = json.loads((app / "audit" / "findings.json").read_text())
    assert not found["refusals"]
    assert {one["question"] for one in found["verdicts"]} == {"membership"}
    assert {one["verdict"] for one in found["verdicts"]} == {"leaks"}
    names = json.loads((app / "recording" / "node_names.json").read_text())
    assert sorted(names.values()) == [str(one) for one in range(CLIENTS)]
