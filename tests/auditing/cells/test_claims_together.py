"""Several attacks make claims about a group of targets before the next group is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, final

import pytest
import torch

from overheard.archive import tensor_files
from overheard.auditing.cells import claims_together
from overheard.auditing.cells.claims_together import ClaimRequest, make_claims_together
from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.core.attack import Attack
from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Broadcast, Message
from overheard.core.needs import Need
from overheard.core.parties import SERVER, Party, client
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.ilrg import Ilrg
from overheard.questions.label_shares.attacks.llg import Llg
from overheard.questions.label_shares.claim import LabelShares
from tests.auditing.plans import TINY, replace_tables

CALLS: list[tuple[str, tuple[Party, ...]]] = []
"""Which attack was asked about which targets."""

TARGETS = tuple(map(client, range(5)))
CLAIM = LabelShares(torch.tensor([0.5, 0.5]))
VIEW = View(frozenset({SERVER}), (Message(0, SERVER, frozenset(TARGETS), Broadcast({})),))


@final
@dataclass(frozen=True, slots=True)
class Asked(Attack[LabelShares]):
    """An attack that remembers what it was asked, and fails at one target."""

    label: str
    fails_at: Party = ""
    needs_more_at: Party = ""

    name: ClassVar[str] = "asked"
    claim_type: ClassVar[type[LabelShares]] = LabelShares
    needs: ClassVar[frozenset[Need]] = frozenset()
    source: ClassVar[str] = "a test"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Claim the same of every target."""
        CALLS.append((self.label, tuple(targets)))
        if self.fails_at in targets:
            raise IndexError("row 7")
        if self.needs_more_at in targets:
            raise NeedsError("a size")
        return dict.fromkeys(targets, CLAIM)


@pytest.fixture(autouse=True)
def two_targets_at_once(monkeypatch):
    # Two targets and the broadcast of the only round.
    monkeypatch.setattr(claims_together, "CACHED_FILES", 3)
    monkeypatch.setattr(claims_together, "MODELS_PER_STACK", 1)
    CALLS.clear()


def ask(*attacks: Asked, targets: Sequence[Party] = TARGETS):
    requests = [ClaimRequest(attack, targets, Knowledge(2), Seed(0)) for attack in attacks]
    return make_claims_together(VIEW, requests)


def test_attacks_take_turns_on_groups_of_targets():
    first, second = ask(Asked("a"), Asked("b"))
    groups = [TARGETS[:2], TARGETS[2:4], TARGETS[4:]]
    assert [(label, group) for group in groups for label in "ab"] == CALLS
    assert list(first.claims) == list(second.claims) == list(TARGETS)


def test_each_attack_gets_its_own_targets():
    requests = [
        ClaimRequest(Asked("a"), TARGETS[:1], Knowledge(2), Seed(0)),
        ClaimRequest(Asked("b"), TARGETS[1:3], Knowledge(2), Seed(0)),
    ]
    first, second = make_claims_together(VIEW, requests)
    assert list(first.claims) == [TARGETS[0]]
    assert list(second.claims) == list(TARGETS[1:3])
    assert [("a", TARGETS[:1]), ("b", TARGETS[1:2]), ("b", TARGETS[2:3])] == CALLS


def test_the_order_of_claims_does_not_depend_on_other_attacks():
    fewer, more = (TARGETS[0], TARGETS[2]), TARGETS[:3]
    attacks = (Asked("a"), Asked("b", needs_more_at=TARGETS[1]), Asked("c"))
    asked = zip(attacks, (fewer, more, more), strict=True)
    requests = [ClaimRequest(one, targets, Knowledge(2), Seed(0)) for one, targets in asked]
    first, second, third = make_claims_together(VIEW, requests)
    assert list(first.claims) == list(second.claims) == list(fewer)
    assert list(third.claims) == list(more)


def test_an_attack_that_fails_claims_nothing_and_is_not_asked_again():
    failed, other = ask(Asked("a", fails_at=TARGETS[2]), Asked("b"))
    assert failed.has_failed
    assert not failed.claims
    assert list(failed.problems) == list(TARGETS)
    assert list(other.claims) == list(TARGETS)
    assert [label for label, _ in CALLS] == ["a", "b", "a", "b", "b"]


def test_what_is_missing_for_one_target_concerns_no_other():
    (made,) = ask(Asked("a", needs_more_at=TARGETS[3]))
    assert made.problems == {TARGETS[3]: "a size"}
    assert list(made.claims) == [TARGETS[0], TARGETS[1], TARGETS[2], TARGETS[4]]
    assert not made.has_failed


def count_reads(monkeypatch, attacks: tuple[Attack[LabelShares], ...], folder: Path) -> int:
    """Return how often an audit reads updates from the disk, with few files in memory."""
    names, read_file = list[str](), tensor_files._read_small_file.__wrapped__

    def noted(path, version, shapes, sha256):
        names.append(path.name)
        return read_file(path, version, shapes, sha256)

    monkeypatch.setattr(tensor_files, "_read_small_file", lru_cache(4)(noted))
    threat = TINY.threats[0].model_copy(update={"attacks": attacks})
    plan = replace_tables(TINY, threats=(threat,))
    found = audit(plan, folder, resources=Resources(device="cpu", workers=1))
    assert {one.cell.part for one in found.findings} == {attack.name for attack in attacks}
    return sum("update" in name for name in names)


@pytest.mark.slow
def test_further_attacks_do_not_read_all_updates_again(monkeypatch, tmp_path):
    # Room for both rounds of one client: two broadcasts and two updates.
    monkeypatch.setattr(claims_together, "CACHED_FILES", 4)
    monkeypatch.setattr(tensor_files, "CLOCK_TICK", -1.0)  # the run was recorded just before
    one = count_reads(monkeypatch, (BiasInversion(),), tmp_path / "one")
    three = count_reads(monkeypatch, (Llg(), Ilrg(), BiasInversion()), tmp_path / "three")
    # Each attack by itself would read all six updates twice: in both rounds, and in its own.
    assert one > 0
    assert three - one < 6
