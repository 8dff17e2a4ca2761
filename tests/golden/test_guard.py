"""Golden audits find a change, and name it with its old and its new value."""

import doctest
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from overheard.auditing.cells.cell_claims import CellClaims
from overheard.auditing.judging.judge import ClaimsOfThreat
from overheard.core.true_facts.label_counts import LabelCounts
from overheard.core.truth import GroundTruth
from overheard.findings.audit import Audit
from overheard.questions.label_shares.claim import LabelShares
from tests.golden import changes, files, judgements, rounding
from tests.golden.__main__ import changed_files, refuse_near_levels
from tests.golden.claims import TOLERANCE, are_alike, claims_of
from tests.golden.files import claim_changes, judgement_changes
from tests.golden.judgements import Judgement, judged_audit, judgement_of
from tests.golden.stored_audits import AttackedAudit, load_audit, pack_audit, plain_values

NAME = "small_label_shares"


@pytest.fixture(scope="module")
def stored() -> AttackedAudit:
    """The stored claims of attacks that leak."""
    return load_audit(NAME)


@pytest.fixture(scope="module")
def judged(stored: AttackedAudit) -> Audit:
    """The audit that follows from them."""
    return judged_audit(stored)


def changed_claims(
    attacked: AttackedAudit, change: Callable[[ClaimsOfThreat], ClaimsOfThreat]
) -> AttackedAudit:
    """Return stored claims and truths after a change of those of each threat."""
    runs = tuple(
        replace(run, claims=tuple(change(one) for one in run.claims)) for run in attacked.runs
    )
    return replace(attacked, runs=runs)


def changed_cells(
    attacked: AttackedAudit, change: Callable[[CellClaims], CellClaims]
) -> AttackedAudit:
    """Return stored claims after a change of each cell."""
    return changed_claims(
        attacked, lambda one: replace(one, cells=tuple(map(change, one.cells)))
    )


def changed_truth(
    attacked: AttackedAudit, change: Callable[[GroundTruth], GroundTruth]
) -> AttackedAudit:
    """Return stored claims with other truths."""

    def change_one(one: ClaimsOfThreat) -> ClaimsOfThreat:
        assert one.truth.truth is not None
        return replace(one, truth=replace(one.truth, truth=change(one.truth.truth)))

    return changed_claims(attacked, change_one)


def lines_of(attacked: AttackedAudit) -> list[str]:
    """Return a line for each golden value that changes."""
    return judgement_changes(NAME, judgement_of(judged_audit(attacked)))


def test_a_changed_p_value_and_verdict_are_named(stored: AttackedAudit) -> None:
    def alike(truth: GroundTruth) -> GroundTruth:
        held = truth.facts.need(LabelCounts)
        redrawn = {
            key: held.counts[key].expand(drawn.shape) for key, drawn in held.redrawn.items()
        }
        return truth.having(LabelCounts(held.counts, redrawn))

    # Each claim fits as well as it fits any redrawn partition, so nothing is tested any more.
    found = lines_of(changed_truth(stored, alike))
    place = "verdicts: no defense | server | label_shares | clients: "
    assert f"{place}p-value: 0.005 -> 1.0" in found
    assert any(line.startswith(f"{place}verdict: 'leaks' -> ") for line in found)
    assert any(line.startswith("policies: nothing leaks: exit code: 1 -> ") for line in found)


def test_a_changed_sentence_of_the_page_is_named(stored: AttackedAudit) -> None:
    def reworded(cell: CellClaims) -> CellClaims:
        return replace(cell, refusals=dict.fromkeys(cell.refusals, ("a full moon",)))

    found = lines_of(changed_cells(stored, reworded))
    # The gate repeats the reason.
    assert all("a full moon" in line for line in found)
    on_page = [line for line in found if line.startswith("page, line ")]
    assert any("distilled sets of the target" in line for line in on_page)


def test_a_changed_claim_is_named(stored: AttackedAudit) -> None:
    def moved(cell: CellClaims) -> CellClaims:
        def move(claim: object) -> LabelShares:
            assert isinstance(claim, LabelShares)
            return replace(claim, shares=0.999 * claim.shares + 0.0001)

        claims = {
            target: replace(one, claim=move(one.claim)) for target, one in cell.claims.items()
        }
        return replace(cell, claims=claims)

    found = lines_of(changed_cells(stored, moved))
    assert any(line.startswith("scores: ") and "value[0]: " in line for line in found)


def test_a_changed_truth_is_named(stored: AttackedAudit) -> None:
    def one_more(truth: GroundTruth) -> GroundTruth:
        counts = truth.facts.need(LabelCounts).counts
        return truth.having(LabelCounts({key: one + 1 for key, one in counts.items()}))

    found = lines_of(changed_truth(stored, one_more))
    assert any(line.startswith("scores: ") and "value[0]: " in line for line in found)


def test_a_truth_that_is_added_later_gives_the_judgement_of_one_from_the_start() -> None:
    with_truth = load_audit("recorded_with_truth")
    without = load_audit("recorded_without_truth")
    assert not any(one.is_checked for one in judged_audit(without).findings)
    later = replace(
        with_truth,
        runs=tuple(
            replace(
                known,
                claims=tuple(
                    replace(one, truth=other.truth)
                    for one, other in zip(unknown.claims, known.claims, strict=True)
                ),
            )
            for unknown, known in zip(without.runs, with_truth.runs, strict=True)
        ),
    )
    found = judgement_of(judged_audit(later))
    assert not judgement_changes("recorded_with_truth", found)


def test_the_same_claims_are_stored_as_the_same_bytes(stored: AttackedAudit) -> None:
    packed = pack_audit(stored)
    assert packed == pack_audit(stored)
    longer = replace(stored, subject=replace(stored.subject, description="longer"))
    (line,) = changes.value_changes(plain_values(packed), plain_values(pack_audit(longer)))
    assert line.startswith("rest: content: description: ")


def test_a_claim_may_differ_by_the_tolerance_and_no_more(judged: Audit) -> None:
    def lines(shift: float) -> list[str]:
        first, *others = judged.findings
        head, *rest = first.claimed.numbers
        moved = replace(first, claimed=replace(first.claimed, numbers=(head + shift, *rest)))
        claims = claims_of(replace(judged, findings=(moved, *others)))
        return claim_changes("label_shares", claims, are_alike)

    assert not lines(TOLERANCE / 2)
    (line,) = lines(TOLERANCE * 3)
    assert ": claimed[0]: " in line


def test_refusals_are_compared_word_for_word(judged: Audit) -> None:
    first, *others = judged.refusals
    other = replace(first, missing=(f"{first.missing[0]}.",))
    claims = claims_of(replace(judged, refusals=(other, *others)))
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
