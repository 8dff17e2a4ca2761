"""Attacks of a threat are asked together, but only about rounds on which they are run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, final

import pytest
import torch

from overheard.auditing.attack_runner import ThreatCells
from overheard.auditing.cells.claim_store import ClaimStore, FolderClaimStore, NoClaimStore
from overheard.auditing.cells.contributors import find_contributors
from overheard.auditing.observed_run import ObservedRun
from overheard.auditing.program import AttackSpec, RunSpec
from overheard.auditing.progress import Progress
from overheard.auditing.run_kinds import PLANNED
from overheard.core.attack import Attack
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Message, Update
from overheard.core.needs import Need
from overheard.core.parties import SERVER, Party, client
from overheard.core.seeds import Seed
from overheard.core.transcript import Transcript
from overheard.core.view import View
from overheard.findings.finding import Cell
from overheard.plans.plan import ThreatPlan
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.label_shares.question import LabelSharesQuestion
from tests.auditing.conftest import inputs_for
from tests.auditing.plans import NO_DEFENSE, TINY

CALLS: list[tuple[str, tuple[int, ...]]] = []
"""Which attack was asked about which rounds."""

ROUNDS = (0, 1)
TARGET = client(0)
MESSAGES = tuple(Message(one, TARGET, frozenset({SERVER}), Update({}, 4)) for one in ROUNDS)
NO_STORE = NoClaimStore()


@final
@dataclass(frozen=True, slots=True)
class Asked(Attack[LabelShares]):
    """An attack that remembers the rounds that it was asked about."""

    label: str
    is_missing_something: bool = False
    labels: int = 10
    lacks_size_of: str = ""

    name: ClassVar[str] = "asked"
    claim_type: ClassVar[type[LabelShares]] = LabelShares
    needs: ClassVar[frozenset[Need]] = frozenset()
    source: ClassVar[str] = "a test"

    def has_separate_targets(self) -> bool:
        """Return True: it looks at nothing."""
        return True

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim the same of every target, if nothing is missing."""
        CALLS.append((self.label, tuple(view.rounds())))
        if self.is_missing_something:
            raise NeedsError("a size")
        if self.lacks_size_of in targets:
            raise NeedsError(f"a size of {self.lacks_size_of}")
        shares = torch.full((self.labels,), 1 / self.labels)
        return dict.fromkeys(targets, LabelShares(shares))


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


def asked(
    attacks: Mapping[Asked, tuple[int, ...]],
    messages: Sequence[Message],
    store: ClaimStore = NO_STORE,
) -> tuple[ThreatCells, list[AttackSpec]]:
    """Return the cells of attacks on a run, given the rounds that each attacks alone."""
    question, threat = LabelSharesQuestion(), ThreatPlan(attacks=tuple(attacks))
    cells = [
        AttackSpec(
            *(0, threat, attack, question),
            Cell("no defense", 0, (SERVER,), attack.label, repr(attack), question.name, ROUNDS),
            single,
            *("code", "code"),
        )
        for attack, single in attacks.items()
    ]
    run = RunSpec(NO_DEFENSE, "no defense", 0, PLANNED, ROUNDS, tuple(cells))
    seen = ObservedRun(run, Transcript(tuple(messages)), inputs_for(TINY).for_attackers(0))
    view, contributors = View(frozenset({SERVER}), messages), find_contributors(messages, ())
    return ThreatCells(seen, view, contributors, cells, store, Progress(None)), cells


def run_first(second: Asked, single: tuple[int, ...] = ROUNDS) -> None:
    """Run the first of two attacks on both rounds, and on each."""
    cells, (first, _) = asked({Asked("a"): ROUNDS, second: single}, MESSAGES)
    for rounds in (ROUNDS, (0,), (1,)):
        assert cells.claims(first, rounds, (TARGET,)).claims


def test_attacks_are_asked_together_about_all_rounds_and_each():
    run_first(Asked("b"))
    assert [(label, rounds) for rounds in (ROUNDS, (0,), (1,)) for label in "ab"] == CALLS


def test_an_attack_that_needs_all_rounds_is_not_asked_about_single_ones():
    run_first(Asked("b"), ())
    assert [rounds for label, rounds in CALLS if label == "b"] == [ROUNDS]


def test_an_attack_without_claims_is_not_asked_again_about_each_round():
    run_first(Asked("b", is_missing_something=True))
    assert {rounds for label, rounds in CALLS if label == "b"} == {ROUNDS}


def test_an_attack_whose_stored_cell_has_no_claims_is_not_asked_about_each_round(
    tmp_path: Path,
):
    attacks = {Asked("a"): ROUNDS, Asked("b", is_missing_something=True): ROUNDS}
    for wanted in (ROUNDS, (0,)):  # as if the audit was interrupted in between
        cells, (first, _) = asked(attacks, MESSAGES, FolderClaimStore(tmp_path))
        assert cells.claims(first, wanted, (TARGET,)).claims
    assert {rounds for label, rounds in CALLS if label == "b"} == {ROUNDS}


def test_claims_that_are_refused_hide_no_other_reason():
    targets = (client(0), client(1))
    messages = tuple(
        Message(number, target, frozenset({SERVER}), Update({}, 4))
        for number in ROUNDS
        for target in targets
    )
    # The run has ten labels.
    attack = Asked("a", labels=3, lacks_size_of=client(1))
    cells, (only,) = asked({attack: ROUNDS}, messages)
    made = cells.claims(only, ROUNDS, targets)
    assert made.claims == {}
    assert "the claim has 3 labels, the task has 10" in made.refusals[client(0)][0]
    assert made.refusals[client(1)] == ("a size of client/1",)
