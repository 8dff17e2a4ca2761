"""`make gpu-check` says which claims and verdicts change where a GPU rounds."""

import json
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from overheard.plans.plan import read_plan

FOLDER = Path(__file__).parent.parent / "benchmarks" / "gpu"


@pytest.fixture
def audits(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return import_module("audits")


def _finding(attack: str, claimed: list[float], *, is_control: bool = False) -> dict:
    return {
        "attack": attack,
        "target": "client/0",
        "rounds": [0],
        "claimed": claimed,
        "is_control": is_control,
    }


def _write_findings(plan: str, folder: Path, claim: list[float], verdict: str) -> None:
    folder.mkdir()
    about = {"arm": "a", "observers": ["server"], "question": "label_shares", "about": "x"}
    findings = [
        _finding("lira(models=8), not simulating", [0.6, 0.8]),
        _finding("decaf", claim),
        _finding("decaf", [9.0, 9.0], is_control=True),
    ]
    content = {"verdicts": [about | {"verdict": verdict}], "findings": findings}
    (folder / "findings.json").write_text(json.dumps(content))


def test_claims_and_verdicts_are_compared_with_float32(
    audits: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def audit(plan: str, device: str, folder: Path) -> float:
        is_rounded = 'precision = "bf16"' in plan
        claim, verdict = ([0.9, 0.8], "unclear") if is_rounded else ([0.6, 0.8], "leaks")
        _write_findings(plan, folder, claim, verdict)
        return 2.0 if is_rounded else 3.0

    monkeypatch.setattr(audits, "audit", audit)
    rows = audits.by_precision("cuda", ("float32", "bf16"))
    # The difference (0.3, 0) has the length 0.3, and the claim (0.6, 0.8) the length 1.
    assert rows["bf16"]["change of claims"] == pytest.approx({"decaf": 0.3, "lira": 0.0})
    assert rows["bf16"]["changed verdicts"] == ["a | server | label_shares | x"]
    assert rows["float32"]["change of claims"] == {"decaf": 0.0, "lira": 0.0}
    assert rows["float32"]["changed verdicts"] == []
    text = import_module("page")._precisions(rows)
    assert "| precision | seconds | verdicts that differ | lira | decaf |" in text
    assert "| bf16 | 2.00 s | 1 of 1 | 0e+00 | 3e-01 |" in text


def test_a_claim_that_is_no_number_is_no_small_change(
    audits: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def audit(plan: str, device: str, folder: Path) -> float:
        claim = [0.6, 0.8] if "float32" in plan else [0.6, float("nan")]
        _write_findings(plan, folder, claim, "leaks")
        return 1.0

    monkeypatch.setattr(audits, "audit", audit)
    rows = audits.by_precision("cuda", ("float32", "bf16"))
    assert np.isnan(rows["bf16"]["change of claims"]["decaf"])
    assert "| bf16 | 1.00 s | 0 of 1 | 0e+00 | nan |" in import_module("page")._precisions(rows)


def test_other_claims_are_no_comparison(
    audits: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def audit(plan: str, device: str, folder: Path) -> float:
        _write_findings(plan, folder, [1.0] if "float32" in plan else [], "leaks")
        return 1.0

    monkeypatch.setattr(audits, "audit", audit)
    with pytest.raises(RuntimeError, match="bf16 has other claims than float32"):
        audits.by_precision("cuda", ("float32", "bf16"))


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
def test_its_plan_is_valid(audits: ModuleType, precision: str, tmp_path: Path) -> None:
    place = tmp_path / "plan.toml"
    place.write_text(audits.CLAIMS.replace("PRECISION", precision))
    audits._write_noise(tmp_path / "noise.npz")
    assert read_plan(place).training.precision == precision
