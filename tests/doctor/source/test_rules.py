"""Each rule fires on a faulty app, at the line of the fault, and not on the same one mended."""

from pathlib import Path

import pytest

from overheard.doctor.criticism import Criticism
from overheard.doctor.source.diagnose import diagnose_source, source_rules
from tests.doctor.source.apps import GOOD, PAIRS, Files


def faults(folder: Path, files: Files) -> tuple[Criticism, ...]:
    for name, text in files.items():
        (folder / name).write_text(text)
    return diagnose_source(folder).criticisms


def test_every_rule_has_a_pair_of_apps() -> None:
    assert set(PAIRS) == {rule.name for rule in source_rules()}


@pytest.mark.parametrize("rule", PAIRS)
def test_a_rule_fires_on_the_fault_alone(rule: str, tmp_path: Path) -> None:
    bad = faults(tmp_path, PAIRS[rule].bad)
    assert rule in [one.rule.id for one in bad]
    marked = [
        f"{name}:{number}"
        for name, text in PAIRS[rule].bad.items()
        for number, line in enumerate(text.splitlines(), 1)
        if line.endswith("# fault")
    ]
    for one in bad:
        if one.rule.id == rule and marked:
            assert one.where in marked
    good = faults(tmp_path, PAIRS[rule].good)
    assert rule not in [one.rule.id for one in good]
    assert not [one for one in good if one.rule.severity == "critical"]


@pytest.mark.parametrize("app", GOOD)
def test_no_rule_is_critical_on_an_app_that_is_right(app: str, tmp_path: Path) -> None:
    for name, text in GOOD[app].items():
        (tmp_path / name).write_text(text)
    found = diagnose_source(tmp_path)
    assert not found.alarms
    assert found.passed


def test_a_client_that_is_kept_in_one_way_of_running_is_told(tmp_path: Path) -> None:
    (tmp_path / "client.py").write_text(GOOD["Flower, e2e-opacus"]["client.py"])
    why = {one.rule.id: one.why for one in diagnose_source(tmp_path).unseen}
    assert "client.py:31 one client is kept" in why["accountant-per-round"]
    kept = (tmp_path / "client.py").read_text().partition("if __name__")[0]
    (tmp_path / "client.py").write_text(kept)
    found = {one.rule.id for one in diagnose_source(tmp_path).alarms}
    assert found == {"accountant-per-round", "epsilon-of-one-round"}
