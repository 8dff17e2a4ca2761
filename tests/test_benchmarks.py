"""The benchmarks that `make bench` runs need no arguments, and the docs show what it kept."""

import json
from importlib import import_module
from pathlib import Path
from runpy import run_path
from types import ModuleType

import pytest

PROJECT = Path(__file__).parent.parent
BENCHMARKS = PROJECT / "benchmarks"
PERFORMANCE = (PROJECT / "docs" / "performance.md").read_text(encoding="utf-8")


@pytest.fixture
def ratios(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module("_ratios")


def test_benchmarks_run_by_make_need_no_arguments(ratios: ModuleType) -> None:
    by_hand = run_path(str(BENCHMARKS / "__main__.py"), run_name="benchmarks")["BY_HAND"]
    sources = {one.stem: one.read_text(encoding="utf-8") for one in BENCHMARKS.glob("[!_]*.py")}
    assert by_hand <= sources.keys()
    needy = {name for name, text in sources.items() if "required=True" in text}
    assert needy
    assert needy <= by_hand


def test_docs_show_the_kept_ratios(ratios: ModuleType) -> None:
    for what, row in ratios.read_ratios(ratios.KEPT).items():
        shown = f"{row['median']:.2f}x ({row['smallest']:.2f} - {row['largest']:.2f})"
        assert shown in PERFORMANCE, what


def test_docs_show_what_was_measured_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS / "gpu"))
    page = import_module("page")
    assert page.BEGIN + page.section(page.kept()) + page.END in PERFORMANCE


def test_the_page_of_a_gpu_says_what_was_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS / "gpu"))
    page = import_module("page")
    machine = dict.fromkeys(("date", "gpu", "cores", "torch", "triton", "commit"), "x")
    tests = {"result": "7 passed", "failed": []}
    some = {"machine": machine, "tests": tests, "memory": {"error": "full"}, "missed": []}
    text = page.section(some)
    assert "Not measured: ceilings, speed, audits, equality, memory.\n" in text
    assert "missed" not in text.lower()
    row = {"s": 1.0, "goal, s": None, "goal, times the plain loop": 3.0, "plain loop, s": None}
    is_missed = import_module("speed").is_missed
    assert is_missed(row)
    assert is_missed(row | {"plain loop, s": 2.9})
    assert not is_missed(row | {"plain loop, s": 3.1})


def test_only_ratios_of_one_machine_are_judged(
    ratios: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "kept.json"
    monkeypatch.setattr(ratios, "KEPT", path)
    monkeypatch.setenv(ratios.VARIABLE, str(path))
    for what in ("held", "fell", "gone", "elsewhere"):
        ratios.keep_ratio(what, [1.9, 2.0, 2.1])
    kept = ratios.read_ratios(path)
    assert kept["held"]["median"] == 2.0
    kept["elsewhere"]["machine"] = "another processor"
    path.write_text(json.dumps(kept), encoding="utf-8")
    measured = {what: kept["held"] | {"median": 1.4} for what in ("fell", "elsewhere", "new")}
    measured["held"] = kept["held"] | {"median": 1.6}
    assert ratios.compare_with_kept(measured) == ["fell"]
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert lines["elsewhere"].endswith("not judged: kept on another processor")
    assert "not kept yet" in lines["new"]
    assert "not among the rows" in lines["gone"]
