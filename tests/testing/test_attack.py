"""The contract tests of attacks find violations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, final

import pytest
import torch

from overheard.core.attack import Attack, TrainingSource
from overheard.core.errors import ClaimError
from overheard.core.knowledge import Knowledge
from overheard.core.needs import UPDATES
from overheard.core.parties import COHORT, Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.label_shares.attacks.decaf import Decaf
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.membership.attacks.loss_membership import LossMembership
from overheard.questions.membership.claim import Membership
from overheard.testing import check_attack
from overheard.testing.attack import ADAPTATION_CHECKS, GENERAL_CHECKS, find_truth_imports
from overheard.testing.trial import AttackCheck, AttackTrial, checks_of, claims_about

LOADS_NO_TRUTH = """
from overheard.questions.label_shares.attacks.decaf import Decaf
"""


@pytest.mark.slow
def test_accepts_a_valid_attack() -> None:
    check_attack(MeanSoftmax())


@pytest.mark.slow
def test_names_each_forbidden_module_that_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = {
        "import overheard.core.truth": "overheard.core.truth",
        "def f(): pass\nfrom overheard.core.scorer import Score": "overheard.core.scorer",
        "import overheard.archive.reader": "overheard.archive.reader",
        "import overheard.questions.membership.statistics": (
            "overheard.questions.membership.statistics"
        ),
    }
    for number, line in enumerate(lines):
        (tmp_path / f"loads_truth_{number}.py").write_text(line)
    monkeypatch.syspath_prepend(tmp_path)
    loaded = find_truth_imports(*(f"loads_truth_{number}" for number in range(len(lines))))
    assert set(lines.values()) <= set(loaded)


@pytest.mark.slow
def test_accepts_other_imports_and_reports_failed_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loads_no_truth.py").write_text(LOADS_NO_TRUTH)
    monkeypatch.syspath_prepend(tmp_path)
    assert find_truth_imports("loads_no_truth") == ()
    with pytest.raises(AssertionError, match="nowhere cannot be imported"):
        find_truth_imports("nowhere")


@final
@dataclass(frozen=True, slots=True)
class FalseDeclaration(Attack[LabelShares]):
    """Delegates to another attack, and declares any rehearsal."""

    inner: Any
    declared: TrainingSource = "none"

    name: ClassVar[str] = "false_declaration"
    claim_type: ClassVar = LabelShares
    needs: ClassVar = frozenset({UPDATES})
    source: ClassVar[str] = "an attack for tests"

    def training_source(self) -> TrainingSource:
        return self.declared

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        return self.inner.infer(view, targets, knowledge, seed)


@final
@dataclass(frozen=True, slots=True)
class Adapting:
    """Claims something different if defenses are known."""

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        shares = torch.tensor([0.4, 0.3, 0.2, 0.1] if knowledge.defenses else [0.25] * 4)
        return {target: LabelShares(shares) for target in targets}


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        (FalseDeclaration(Decaf()), "`used_training_parts`"),
        (
            FalseDeclaration(MeanSoftmax(), "virtual clients"),
            "declare another `training_source`",
        ),
        (FalseDeclaration(Adapting()), "declare 'virtual clients', 'known users'"),
        (
            FalseDeclaration(Adapting(), "shadow devices"),
            "declare 'virtual clients', 'known users'",
        ),
    ],
)
def test_finds_wrong_declarations(attack: FalseDeclaration, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        _run_all(ADAPTATION_CHECKS, attack)


def test_finds_claims_that_depend_on_a_global_generator() -> None:
    @final
    @dataclass(frozen=True, slots=True)
    class Random:
        def infer(
            self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
        ) -> Mapping[Party, LabelShares]:
            return {target: LabelShares(torch.rand(4).softmax(0)) for target in targets}

    random = replace(FalseDeclaration(MeanSoftmax()), inner=Random())
    with pytest.raises(AssertionError, match="the same seed gives different claims"):
        _run_all(GENERAL_CHECKS, random)


def test_finds_claims_that_an_audit_cannot_store() -> None:
    @final
    @dataclass(frozen=True, slots=True)
    class Listing:
        def infer(
            self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
        ) -> Mapping[Party, LabelShares]:
            doubts: Any = ["a list"]
            claim = LabelShares(torch.full((4,), 0.25), reason_for_doubt=doubts)
            return dict.fromkeys(targets, claim)

    listing = replace(FalseDeclaration(MeanSoftmax()), inner=Listing())
    with pytest.raises(ClaimError, match="a list cannot be stored"):
        _run_all(GENERAL_CHECKS, listing)


@final
@dataclass(frozen=True, slots=True)
class Jointly(Attack[Membership]):
    """Claims of all targets together that the records with the lowest losses are theirs."""

    name: ClassVar[str] = "jointly"
    claim_type: ClassVar = Membership
    needs: ClassVar = LossMembership.needs
    source: ClassVar[str] = "an attack for tests"
    is_joint: ClassVar[bool] = True

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, Membership]:
        claims = LossMembership().infer(view, targets, knowledge, seed)
        scores = torch.stack([claim.scores for claim in claims.values()])
        return {COHORT: Membership(scores.amax(0))}


def test_joint_attacks_are_tried_on_the_runs_of_built_in_questions() -> None:
    trial = AttackTrial(Jointly(), checks_of(Membership))
    for check in (*GENERAL_CHECKS, *trial.checks.attack_checks):
        check(trial)
    (claim,) = claims_about(trial, trial.first_run)
    assert len(claim.scores) > 0


@pytest.mark.slow
def test_finds_an_attack_whose_module_loads_the_ground_truth() -> None:
    with pytest.raises(
        AssertionError, match=r"false_declaration: .* loads .*overheard\.core\.truth"
    ):
        check_attack(FalseDeclaration(MeanSoftmax()))


def _run_all(checks: Sequence[AttackCheck], attack: FalseDeclaration) -> None:
    trial = AttackTrial(attack, checks_of(attack.claim_type))
    for check in checks:
        check(trial)
