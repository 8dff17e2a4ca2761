"""Golden audits find a change, and name it with its old and its new value."""

import doctest
import subprocess
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from overheard.findings.audit import Audit
from overheard.findings.finding import Finding
from tests.golden import changes, files, judgements, rounding
from tests.golden.__main__ import changed_files, refuse_near_levels
from tests.golden.claims import TOLERANCE, are_alike, claims_of
from tests.golden.files import claim_changes, judgement_changes
from tests.golden.judgements import Judgement, judge
from tests.golden.stored_audits import load_audit

NAME = "small_label_shares"


@pytest.fixture(scope="module")
def stored() -> Audit:
    """A stored audit whose attacks leak."""
    return load_audit(NAME)


def test_a_changed_p_value_and_verdict_are_named(stored: Audit) -> None:
    # Each claim fits as well as it fits any redrawn partition, so nothing is tested any more.
    alike = tuple(
        replace(one, redrawn_fits=(0.0,) * len(one.redrawn_fits)) for one in stored.findings
    )
    found = judgement_changes(NAME, judge(replace(stored, findings=alike)))
    place = "verdicts: no defense | server | label_shares | clients: "
    assert f"{place}p-value: 0.005 -> 1.0" in found
    assert any(line.startswith(f"{place}verdict: 'leaks' -> ") for line in found)
    assert any(line.startswith("policies: nothing leaks: exit code: 1 -> ") for line in found)


def test_a_changed_sentence_of_the_page_is_named(stored: Audit) -> None:
    refusals = tuple(replace(one, missing=("a full moon",)) for one in stored.refusals)
    found = judgement_changes(NAME, judge(replace(stored, refusals=refusals)))
    # The gate repeats the reason.
    assert all("a full moon" in line for line in found)
    on_page = [line for line in found if line.startswith("page, line ")]
    assert any("distilled sets of the target" in line for line in on_page)


def test_a_changed_score_is_named(stored: Audit) -> None:
    def shifted(finding: Finding) -> Finding:
        return replace(
            finding,
            scores=tuple(replace(one, value=one.value * 0.999) for one in finding.scores),
        )

    moved = replace(stored, findings=tuple(map(shifted, stored.findings)))
    found = judgement_changes(NAME, judge(moved))
    assert any(line.startswith("scores: ") and "value[0]: " in line for line in found)


def test_a_claim_may_differ_by_the_tolerance_and_no_more(stored: Audit) -> None:
    def lines(shift: float) -> list[str]:
        first, *others = stored.findings
        moved = replace(first, claimed=(first.claimed[0] + shift, *first.claimed[1:]))
        claims = claims_of(replace(stored, findings=(moved, *others)))
        return claim_changes("label_shares", claims, are_alike)

    assert not lines(TOLERANCE / 2)
    (line,) = lines(TOLERANCE * 3)
    assert ": claimed[0]: " in line


def test_refusals_are_compared_word_for_word(stored: Audit) -> None:
    first, *others = stored.refusals
    other = replace(first, missing=(f"{first.missing[0]}.",))
    claims = claims_of(replace(stored, refusals=(other, *others)))
    (line,) = claim_changes("label_shares", claims, are_alike)
    assert line.startswith("refusals: ")


def test_a_p_value_near_its_level_is_not_written() -> None:
    row = {"p-value": 0.03, "smallest p-value": 0.001}
    with pytest.raises(SystemExit, match=r"one: no defense: p-value 0\.03"):
        refuse_near_levels({"one": Judgement({"verdicts": {"no defense": {**row}}}, "")})
    far = {"p-value": 0.04, "smallest p-value": 0.001}
    refuse_near_levels({"one": Judgement({"verdicts": {"no defense": {**far}}}, "")})


@pytest.mark.parametrize("module", [changes, files, judgements, rounding])
def test_the_examples_of_the_code_run(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed


def test_a_dirty_tree_is_found_and_golden_files_do_not_count(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=A", "-c", "user.email=a@b.c", *arguments],
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )

    git("init")
    golden, code = tmp_path / "golden", tmp_path / "code.py"
    golden.mkdir()
    (golden / "one.json").write_text("1")
    code.write_text("1")
    git("add", ".")
    git("commit", "-m", "One")
    (golden / "one.json").write_text("2")
    assert not changed_files(tmp_path, [golden])
    code.write_text("2")
    (tmp_path / "more.py").write_text("3")
    assert changed_files(tmp_path, [golden]) == ["code.py", "more.py"]
