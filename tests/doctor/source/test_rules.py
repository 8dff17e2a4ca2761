"""Each rule fires on a faulty app, at the line of the fault, and not on the same one mended."""

from pathlib import Path

import pytest

from overheard.doctor.criticism import Criticism
from overheard.doctor.source.diagnose import diagnose_source, source_rules
from tests.doctor.source.apps import PAIRS, Files


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
