"""An error in an attack of another package refuses that attack, not the audit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, final

import pytest
import torch

from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.core.attack import Attack
from overheard.core.custom_code.attack_claims import make_claims
from overheard.core.errors import OutputError
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Update
from overheard.core.needs import Need
from overheard.core.parties import SERVER, Party, client
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.claim import LabelShares
from overheard.questions.membership.attacks.fed_mia import FedMia
from overheard.questions.membership.attacks.loss_membership import LossMembership
from overheard.questions.membership.checks import simulate_membership
from overheard.testing.planted_labels import SKEWED, simulate_one_round
from tests.auditing.plans import TINY, replace_tables

OUTCOME: list[object] = []
"""What the attack raises or returns."""


@final
@dataclass(frozen=True, slots=True)
class Foreign(Attack[LabelShares]):
    """An attack as another package would define it."""

    name: ClassVar[str] = "foreign"
    claim_type: ClassVar[type[LabelShares]] = LabelShares
    needs: ClassVar[frozenset[Need]] = frozenset()
    source: ClassVar[str] = "a test"

    def infer(
        self, view: View, targets: Sequence[Party], knowledge: Knowledge, seed: Seed
    ) -> Mapping[Party, LabelShares]:
        """Raise or return what the test wants."""
        if isinstance(OUTCOME[-1], Exception):
            raise OUTCOME[-1]
        result: Any = OUTCOME[-1]
        return result


def made(outcome: object) -> tuple[Mapping[Party, str], bool]:
    OUTCOME.append(outcome)
    run = simulate_one_round(SKEWED)
    view = run.transcript.seen_by(SERVER)
    claims = make_claims(Foreign(), view, view.senders(), run.knowledge, Seed(0))
    assert claims.claims == {}
    return claims.problems, claims.has_failed


class OtherShares(LabelShares):
    """Label shares that are not of the class that the attack states."""


OTHERS = {client(number): OtherShares(torch.full((10,), 0.1)) for number in range(10)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (IndexError("row 7"), "IndexError: row 7 (test_attack_claims.py, line "),
        ({}, "ClaimError: it returned no claim about client/0"),
        (OTHERS, "ClaimError: it returned a OtherShares about client/0"),
    ],
)
def test_an_error_is_a_reason_that_names_the_function_and_its_contract(
    outcome: object, message: str
):
    problems, has_failed = made(outcome)
    assert has_failed
    (reason,) = set(problems.values())
    assert message in reason
    assert "foreign: infer failed" in reason
    assert "returns a mapping with a LabelShares for each target" in reason


def test_an_error_that_stops_everything_stops_the_audit():
    with pytest.raises(OutputError):
        made(OutputError("disk full"))


NINE_LABELS = {client(number): LabelShares(torch.full((9,), 1 / 9)) for number in range(10)}


@pytest.mark.parametrize("outcome", [IndexError("row 7"), NINE_LABELS])
def test_other_attacks_go_on_and_a_corrected_attack_runs(outcome: object, tmp_path: Path):
    OUTCOME.append(outcome)
    threat = TINY.threats[0].model_copy(update={"attacks": (Foreign(), BiasInversion())})
    plan = replace_tables(TINY, threats=(threat,))
    here = Resources(device="cpu", workers=1)
    found = audit(plan, tmp_path, resources=here)
    assert {one.cell.part for one in found.findings} == {"bias_inversion"}
    assert {one.cell.part for one in found.refusals} == {"foreign"}
    assert all("foreign: infer failed" in one.missing[0] for one in found.refusals)
    claims = {one.target: one for one in found.findings if one.cell.rounds == (0, 1)}
    OUTCOME.append({party: LabelShares(torch.full((10,), 0.1)) for party in claims})
    again = audit(plan, tmp_path, resources=here)
    assert {one.cell.part for one in again.findings} == {"bias_inversion", "foreign"}


@pytest.mark.parametrize("attack", [LossMembership(), FedMia(), FedMia("confidence")], ids=repr)
def test_a_client_whose_numbers_are_too_large_costs_no_other_its_claims(attack):
    run = simulate_membership(memorised=True)
    view = run.transcript.seen_by(SERVER)
    huge = tuple(
        replace(one, body=Update({name: w + 3e38 for name, w in one.body.delta.items()}))
        if isinstance(one.body, Update) and one.sender == run.targets[0]
        else one
        for one in view.messages
    )
    made_now = make_claims(
        attack, replace(view, messages=huge), run.targets, run.knowledge, Seed(0)
    )
    assert made_now.claims.keys() == set(run.targets[1:])
    assert made_now.problems.keys() == {run.targets[0]}
    assert not made_now.has_failed
