"""The contract tests of attacks let no liar through."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, final

import pytest
import torch

from overheard.core.attack import Attack, Rehearsal
from overheard.core.knowledge import Knowledge
from overheard.core.needs import UPDATES
from overheard.core.parties import Party
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.label_shares.attacks.decaf import Decaf
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.label_shares.claim import LabelShares
from overheard.testing import check_attack
from overheard.testing.adapting import CHECKS
from overheard.testing.attack import AttackCheck, general_checks
from overheard.testing.trial import trial_of
from overheard.testing.truth_apart import truth_loaded_by

TRUTHFUL = """
from overheard.questions.label_shares.attacks.decaf import Decaf
"""


def test_an_attack_that_keeps_to_everything_passes() -> None:
    check_attack(MeanSoftmax())


@pytest.mark.parametrize(
    ("module", "loaded"),
    [
        ("import overheard.core.truth", "overheard.core.truth"),
        ("def f(): pass\nfrom overheard.core.scorer import Score", "overheard.core.scorer"),
        ("import overheard.archive.reader", "overheard.archive.reader"),
        (
            "import overheard.questions.membership.statistics",
            "overheard.questions.membership.statistics",
        ),
    ],
)
def test_what_loads_the_truth_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, loaded: str
) -> None:
    (tmp_path / "prying.py").write_text(module)
    monkeypatch.syspath_prepend(tmp_path)
    assert loaded in truth_loaded_by("prying")


def test_what_loads_no_truth_is_fine_and_what_cannot_be_loaded_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "honest.py").write_text(TRUTHFUL)
    monkeypatch.syspath_prepend(tmp_path)
    assert truth_loaded_by("honest") == ()
    with pytest.raises(AssertionError, match="nowhere cannot be imported"):
        truth_loaded_by("nowhere")


@final
@dataclass(frozen=True, slots=True)
class Liar(Attack[LabelShares]):
    """Asks another attack, and says of itself what it is told to say."""

    asks: Any
    says: Rehearsal = "none"

    name: ClassVar[str] = "liar"
    answers: ClassVar = LabelShares
    needs: ClassVar = frozenset({UPDATES})
    source: ClassVar[str] = "an attack that is made for tests"

    def rehearsal(self) -> Rehearsal:
        return self.says

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        return self.asks.infer(view, targets, knowledge, seed)


@final
@dataclass(frozen=True, slots=True)
class Adapting:
    """Claims something else wherever defenses are known."""

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        shares = torch.tensor([0.4, 0.3, 0.2, 0.1] if knowledge.defenses else [0.25] * 4)
        return {who: LabelShares(shares) for who in targets}


@pytest.mark.parametrize(
    ("liar", "words"),
    [
        (Liar(Decaf()), "in `uses_training`"),
        (Liar(MeanSoftmax(), "virtual clients"), "say another `rehearsal`"),
        (Liar(Adapting()), "say 'virtual clients' or 'known users'"),
        (Liar(Adapting(), "shadow devices"), "say 'virtual clients' or 'known users'"),
    ],
)
def test_an_attack_that_lies_about_what_it_follows_is_told(liar: Liar, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        _run_all(CHECKS, liar)


def test_an_attack_that_claims_otherwise_each_time_is_told() -> None:
    @final
    @dataclass(frozen=True, slots=True)
    class Fickle:
        def infer(
            self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
        ) -> Mapping[Party, LabelShares]:
            return {who: LabelShares(torch.rand(4).softmax(0)) for who in targets}

    fickle = replace(Liar(MeanSoftmax()), asks=Fickle())
    with pytest.raises(AssertionError, match="the same seed gives other claims"):
        _run_all(general_checks(), fickle)


def test_an_attack_in_a_module_that_loads_the_truth_is_told() -> None:
    with pytest.raises(AssertionError, match=r"liar: .* loads .*overheard\.core\.truth"):
        check_attack(Liar(MeanSoftmax()))


def _run_all(checks: Sequence[AttackCheck], liar: Liar) -> None:
    trial = trial_of(liar)
    for check in checks:
        check(trial)
