"""Claims are stored and reused."""

import json
import math
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import ClassVar, final

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import Float
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from overheard.archive import tensor_files
from overheard.auditing.cells import claim_batches
from overheard.auditing.cells.cell_claims import CellClaims, TargetClaim
from overheard.auditing.cells.claim_batches import ClaimRequest, make_claims_in_batches
from overheard.auditing.cells.claim_store import (
    FolderClaimStore,
    NoClaimStore,
    encode_cell_claims,
)
from overheard.auditing.cells.contributors import find_contributors
from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.core.attack import Attack
from overheard.core.claims import Claim, Interval, LearningCurve, Picture, Timeline
from overheard.core.errors import ClaimError, NeedsError, OutputError
from overheard.core.knowledge import Knowledge
from overheard.core.messages import (
    Aggregate,
    Broadcast,
    Evaluation,
    Message,
    MessageBody,
    MissingReply,
    Update,
)
from overheard.core.needs import Need
from overheard.core.parties import COHORT, SERVER, Party, client, shadow_device
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.findings.finding import Cell
from overheard.questions.attribute.claim import Attribute
from overheard.questions.identity.claim import Identity
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.ilrg import Ilrg
from overheard.questions.label_shares.attacks.llg import Llg
from overheard.questions.label_shares.claim import LabelShares, SizeEstimate
from overheard.questions.membership.claim import Membership
from overheard.questions.same_sender.claim import SameSender
from overheard.questions.shift.claim import GaussianEstimate, Shift
from overheard.questions.words.claim import Words
from tests.auditing.plans import TINY, replace_tables

CELL = Cell("none", 0, (SERVER,), "decaf", "Decaf()", "label_shares", (0, 1))


SHARES = LabelShares(
    torch.tensor([1 / 3, 2 / 3], dtype=torch.float64),
    absent=torch.tensor([False, True]),
    bounds=Interval((0.1, 1 / 3), (0.4, 2 / 3)),
    null_probability=torch.tensor([0.0, 0.25]),
    size=SizeEstimate(17.5, low=3.0, high=20.0, converged=False),
    reason_for_doubt="noise",
    own_errors=LearningCurve((10, 20), (0.5, 0.25), 20, 40),
)


USERS = tuple(f"user {number} <Zoë\u202e>" for number in range(20))


TIMELINE = Timeline((0, 1), (0.5, 1.5), (1.0, 1.0), 0.05, alarm=1)


CLAIMS: tuple[Claim, ...] = (
    SHARES,
    LabelShares(torch.tensor([0.25, 0.75])),
    Shift(TIMELINE, GaussianEstimate(torch.zeros(2), torch.eye(2))),
    Identity(USERS, torch.arange(20.0), 0.25),
    SameSender((client(1), client(2)), torch.tensor([0.5, -1e-30])),
    Attribute("hand", ("left", "right"), torch.tensor([0.5, 0.5])),
    Membership(torch.tensor([0.1, -2.0, 0.0])),
    Words(torch.tensor([0.5, 0.25]), ("a", "b"), torch.tensor([True, False]), (1, 0)),
)


def cell_claims(claim: Claim) -> CellClaims:
    about = TargetClaim(claim, {"a guess": claim}, (0, 1))
    return CellClaims(
        CELL, {client(0): about, client(1): about}, {client(2): ("updates",)}, "code"
    )


def only_file(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def are_equal(one: object, other: object) -> bool:
    """Return whether two values have equal types, fields and bits."""
    if isinstance(one, Tensor):
        assert isinstance(other, Tensor)
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, Mapping):
        assert isinstance(other, Mapping)
        pairs = zip(one.items(), other.items(), strict=True)
        return all(a == b and are_equal(x, y) for (a, x), (b, y) in pairs)
    if hasattr(one, "__dataclass_fields__"):
        names = one.__dataclass_fields__
        return type(one) is type(other) and all(
            are_equal(getattr(one, name), getattr(other, name)) for name in names
        )
    return type(one) is type(other) and one == other


def test_a_store_that_keeps_nothing_returns_nothing():
    store = NoClaimStore()
    store.save(cell_claims(SHARES))
    assert store.load(CELL, LabelShares) is None


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: type(claim).__name__)
def test_loads_the_claims_that_were_saved(tmp_path: Path, claim: Claim):
    store = FolderClaimStore(tmp_path / "cells")
    assert store.load(CELL, type(claim), "code") is None
    store.save(cell_claims(claim))
    loaded = store.load(CELL, type(claim), "code")
    assert loaded is not None
    assert are_equal(loaded, cell_claims(claim))
    assert store.load(CELL, type(claim), "other code") is None


def test_what_many_claims_share_is_stored_once(tmp_path: Path):
    scores = torch.randn(4000, generator=torch.Generator().manual_seed(0))
    names = tuple(f"word {number}" for number in range(4000))
    claim = TargetClaim(Words(scores, names), {}, (0,))
    one = CellClaims(CELL, {client(0): claim}, {})
    many = replace(one, claims={client(number): claim for number in range(50)})
    assert len(encode_cell_claims(many)) < 1.2 * len(encode_cell_claims(one))


def test_a_different_cell_is_not_found(tmp_path: Path):
    store = FolderClaimStore(tmp_path)
    store.save(cell_claims(SHARES))
    for other in (
        replace(CELL, arm="noise"),
        replace(CELL, seed=1),
        replace(CELL, observers=(client(0),)),
        replace(CELL, attack="decaf, about the cohort"),
        replace(CELL, settings="Decaf(steps=1)"),
        replace(CELL, rounds=(0,)),
        replace(CELL, is_control=True),
    ):
        assert store.load(other, LabelShares, "code") is None


@given(st.lists(st.floats(width=32), min_size=1, max_size=5), st.floats(0, 1))
def test_numbers_are_stored_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[float], unseen: float
):
    users = tuple(map(str, range(len(numbers))))
    finite = [number if math.isfinite(number) else 0.0 for number in numbers]
    store = FolderClaimStore(tmp_path_factory.mktemp("cells"))
    store.save(cell_claims(Identity(users, torch.tensor(finite), unseen)))
    loaded = store.load(CELL, Identity, "code")
    assert loaded is not None
    claim = loaded.claims[client(0)].claim
    assert isinstance(claim, Identity)
    assert claim.unseen == unseen
    signs = torch.tensor(finite).signbit()
    assert claim.scores.tolist() == torch.tensor(finite).tolist()
    assert torch.equal(claim.scores.signbit(), signs)


@final
@dataclass(frozen=True, slots=True)
class Scan(Claim):
    """A claim with a private tensor that is none of its numbers."""

    score: float
    pixels: Float[Tensor, "rows columns"]
    extra: int | None = None

    def numbers(self) -> tuple[float, ...]:
        """Return the score alone."""
        return (self.score,)


def test_a_tensor_that_is_no_number_of_the_claim_is_stored_beside_it(tmp_path: Path):
    store, picture = FolderClaimStore(tmp_path), Scan(math.inf, torch.rand(3, 4))
    store.save(cell_claims(picture))
    with safe_open(only_file(tmp_path), framework="pt") as file:
        assert torch.equal(file.get_tensor("0"), picture.pixels)


def test_refuses_a_claim_that_cannot_be_stored(tmp_path: Path):
    with pytest.raises(ClaimError, match="a set cannot be stored: use numbers"):
        FolderClaimStore(tmp_path).save(
            cell_claims(Scan(0.0, torch.rand(1, 1), {1}))  # type: ignore[arg-type]
        )
    assert not list(tmp_path.iterdir())


def test_refuses_a_claim_that_would_be_another_one_once_it_is_read(tmp_path: Path):
    picture = Scan(torch.tensor(0.7), torch.rand(1, 1))  # type: ignore[arg-type]
    with pytest.raises(ClaimError, match=r"could not be read again.*expected a .*float"):
        FolderClaimStore(tmp_path).save(cell_claims(picture))
    assert not list(tmp_path.iterdir())


def test_refuses_a_tensor_without_plain_numbers(tmp_path: Path):
    with pytest.raises(ClaimError, match="a tensor without plain numbers cannot be stored"):
        FolderClaimStore(tmp_path).save(cell_claims(Scan(0.0, torch.eye(2).to_sparse())))


def test_tensors_that_share_memory_are_stored(tmp_path: Path):
    store, pixels = FolderClaimStore(tmp_path), torch.rand(4, 4)
    first, second = Scan(0.0, pixels), Scan(0.0, pixels[:2])
    about = {
        client(number): TargetClaim(one, {}, (0,)) for number, one in enumerate((first, second))
    }
    store.save(CellClaims(CELL, about, {}))
    loaded = store.load(CELL, Scan)
    assert loaded is not None
    assert are_equal(loaded.claims, about)


def test_numbers_of_numpy_are_stored(tmp_path: Path):
    store = FolderClaimStore(tmp_path)
    store.save(cell_claims(Scan(np.float64(0.5), torch.rand(1, 1))))
    loaded = store.load(CELL, Scan, "code")
    assert loaded is not None
    assert loaded.claims[client(0)].claim.numbers() == (0.5,)


@pytest.mark.parametrize("content", [b"", b"{", b"null", b"{}", b"\xff", b'{"cell": 3}'])
def test_refuses_a_damaged_file_and_says_what_to_do(tmp_path: Path, content: bytes):
    store = FolderClaimStore(tmp_path)
    store.save(cell_claims(SHARES))
    path = only_file(tmp_path)
    path.write_bytes(content)
    with pytest.raises(OutputError, match="delete the file") as refused:
        store.load(CELL, LabelShares, "code")
    assert str(path) in str(refused.value)
    assert path.read_bytes() == content


def test_refuses_truncated_files_and_wrong_types(tmp_path: Path):
    store = FolderClaimStore(tmp_path)
    store.save(cell_claims(SHARES))
    path = only_file(tmp_path)
    valid = path.read_bytes()
    quoted = json.dumps('"seed":0')[1:-1].encode()
    for content in (
        valid[:-1],
        valid[: len(valid) // 2],
        valid.replace(quoted, quoted.replace(b"0", b"x")),
        valid.replace(b"converged", b"converges"),
        # Label shares that do not sum to 1.
        valid.replace(struct.pack("<d", 2 / 3), bytes(8)),
    ):
        assert content != valid
        for is_digest_right in (False, True):
            path.write_bytes(content)
            if is_digest_right:
                with_new_digest(path)
            with pytest.raises(OutputError, match="delete the file"):
                store.load(CELL, LabelShares, "code")


def test_does_not_load_claims_without_a_digest(tmp_path: Path):
    store = FolderClaimStore(tmp_path)
    store.save(cell_claims(SHARES))
    path = only_file(tmp_path)
    with safe_open(path, framework="pt") as file:
        document = json.loads(file.metadata()["claims"])
    document.pop("sha256")
    save_file(load_file(path), path, {"claims": json.dumps(document)})
    assert store.load(CELL, LabelShares, "code") is None


def test_refuses_claims_of_another_question(tmp_path: Path):
    store = FolderClaimStore(tmp_path)
    store.save(cell_claims(SHARES))
    with pytest.raises(OutputError, match="delete the file"):
        store.load(CELL, Membership, "code")


def test_refuses_the_file_of_another_cell(tmp_path: Path):
    store, other = FolderClaimStore(tmp_path / "a"), FolderClaimStore(tmp_path / "b")
    store.save(cell_claims(SHARES))
    other.save(CellClaims(replace(CELL, seed=1), {}, {}, "code"))
    only_file(tmp_path / "a").write_bytes(only_file(tmp_path / "b").read_bytes())
    with pytest.raises(OutputError, match="contains another cell's claims"):
        store.load(CELL, LabelShares, "code")


def with_document(path: Path, before: str, after: str) -> None:
    """Replace a part of the JSON in a file of claims."""
    with safe_open(path, framework="pt") as file:
        document = file.metadata()["claims"]
    assert before in document
    tensors = load_file(path)
    save_file(tensors, path, {"claims": document.replace(before, after)})
    with_new_digest(path)


def with_new_digest(path: Path) -> None:
    """Let a file that was changed state its digest again."""
    content = path.read_bytes()
    end = content.index(b'sha256\\":\\"') + len('sha256\\":\\"') + 64
    digest = sha256(content[end:]).hexdigest().encode()
    path.write_bytes(content[: end - 64] + digest + content[end:])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"tensor":0}', '{"tensor":-1}'),
        ('{"tensor":0}', '{"tensor":9}'),
        ('{"tensor":0}', "0"),
        ('{"tensor":0}', '{"texts":0}'),
        ('"examples":17.5', '"examples":1' + "0" * 400),
        ('"reason_for_doubt":"noise"', f'"reason_for_doubt":{"[" * 100_000}'),
    ],
    ids=["negative place", "place beyond", "a number", "texts", "too large", "too deep"],
)
def test_refuses_values_that_no_audit_writes(tmp_path: Path, before: str, after: str):
    store = FolderClaimStore(tmp_path)
    store.save(cell_claims(SHARES))
    with_document(only_file(tmp_path), before, after)
    with pytest.raises(OutputError, match="delete the file"):
        store.load(CELL, LabelShares, "code")


def test_refuses_tensors_on_which_a_claim_fails(tmp_path: Path):
    store, scores = FolderClaimStore(tmp_path), torch.tensor([0.1, -2.0, 0.0])
    store.save(cell_claims(Membership(scores)))
    path = only_file(tmp_path)
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    # PyTorch cannot ask whether such numbers are finite.
    save_file({"0": torch.zeros(3, dtype=torch.float8_e4m3fn)}, path, metadata)
    with_new_digest(path)
    with pytest.raises(OutputError, match="delete the file"):
        store.load(CELL, Membership, "code")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Redrawn(Claim):
    """A claim that is a picture."""

    shown: tuple[Picture, ...]

    def numbers(self) -> tuple[float, ...]:
        return ()

    def pictures(self) -> tuple[Picture, ...]:
        return self.shown


def test_pictures_are_stored_with_the_claim_and_with_whom_it_is_about(tmp_path: Path) -> None:
    store, pixels = FolderClaimStore(tmp_path), torch.rand(3, 4, 5)
    targets = (client(0), client(1))
    claim = TargetClaim(Redrawn((Picture("a cat", pixels),)), {}, (0, 1), targets)
    store.save(CellClaims(CELL, {COHORT: claim}, {}))
    found = store.load(CELL, Redrawn)
    assert found is not None
    assert found.claims[COHORT].targets == targets
    (picture,) = found.claims[COHORT].claim.pictures()
    assert picture.name == "a cat"
    assert torch.equal(picture.pixels, pixels)


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
    monkeypatch.setattr(claim_batches, "CACHED_FILES", 3)
    monkeypatch.setattr(claim_batches, "MODELS_PER_STACK", 1)
    CALLS.clear()


def ask(*attacks: Asked, targets: Sequence[Party] = TARGETS):
    requests = [ClaimRequest(attack, targets, Knowledge(2), Seed(0)) for attack in attacks]
    return make_claims_in_batches(VIEW, requests)


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
    first, second = make_claims_in_batches(VIEW, requests)
    assert list(first.claims) == [TARGETS[0]]
    assert list(second.claims) == list(TARGETS[1:3])
    assert [("a", TARGETS[:1]), ("b", TARGETS[1:2]), ("b", TARGETS[2:3])] == CALLS


def test_the_order_of_claims_does_not_depend_on_other_attacks():
    fewer, more = (TARGETS[0], TARGETS[2]), TARGETS[:3]
    attacks = (Asked("a"), Asked("b", needs_more_at=TARGETS[1]), Asked("c"))
    asked = zip(attacks, (fewer, more, more), strict=True)
    requests = [ClaimRequest(one, targets, Knowledge(2), Seed(0)) for one, targets in asked]
    first, second, third = make_claims_in_batches(VIEW, requests)
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
    monkeypatch.setattr(claim_batches, "CACHED_FILES", 4)
    monkeypatch.setattr(tensor_files, "CLOCK_TICK", -1.0)  # the run was recorded just before
    one = count_reads(monkeypatch, (BiasInversion(),), tmp_path / "one")
    three = count_reads(monkeypatch, (Llg(), Ilrg(), BiasInversion()), tmp_path / "three")
    # Each attack by itself would read all six updates twice: in both rounds, and in its own.
    assert one > 0
    assert three - one < 6


ROUNDS = (0, 1)


UPDATE = Update({"w": torch.zeros(1)})


def message(number: int, sender: Party, body: MessageBody) -> Message:
    return Message(number, sender, frozenset({SERVER}), body)


def cohort_rounds(messages: Collection[Message], *observers: Party) -> set[int]:
    return set(find_contributors(messages, observers).rounds_of(COHORT, ROUNDS))


def test_a_client_took_part_where_it_sent_an_update():
    messages = (
        message(0, client(0), UPDATE),
        message(0, client(1), MissingReply("late")),
        message(1, client(0), Evaluation({"loss": 1.0})),
        message(1, client(1), UPDATE),
    )
    found = find_contributors(messages, ())
    assert found.rounds_of(client(0), ROUNDS) == {0}
    assert found.rounds_of(client(1), ROUNDS) == {1}
    assert found.rounds_of(client(1), (0,)) == set()


def test_the_cohort_is_the_clients_that_do_not_observe():
    messages = (
        message(0, client(0), UPDATE),
        message(1, client(0), UPDATE),
        message(1, client(1), UPDATE),
    )
    assert cohort_rounds(messages) == {0, 1}
    assert cohort_rounds(messages, client(0)) == {1}
    assert cohort_rounds(messages, client(0), client(1)) == set()


def test_an_aggregate_names_its_clients():
    sums = (
        message(0, COHORT, Aggregate({}, frozenset({client(0)}))),
        message(1, COHORT, Aggregate({}, frozenset({client(0), client(1)}))),
    )
    assert cohort_rounds(sums, client(0)) == {1}


def test_anyone_may_have_taken_part_where_only_global_models_were_recorded():
    models = [message(number, SERVER, Broadcast({})) for number in ROUNDS]
    assert cohort_rounds(models, client(0)) == {0, 1}


def test_shadow_devices_are_no_clients():
    messages = (message(0, shadow_device(0), UPDATE), message(1, client(0), UPDATE))
    assert cohort_rounds(messages) == {1}
