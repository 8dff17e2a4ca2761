"""Partitions drawn anew for a threat: nothing that its observers hold is drawn again."""

import torch

from overheard.findings.planned_sizes import REDRAWN_PARTITIONS
from overheard.plans.plan import ThreatPlan
from overheard.questions.membership.attacks.loss_membership import LossMembership
from tests.auditing.conftest import inputs_for
from tests.auditing.plans import CLIENT_THREAT, SERVER_THREAT, SMALL


def test_an_observing_client_keeps_its_examples_and_the_server_has_none() -> None:
    audit_inputs = inputs_for(SMALL)
    by_client = audit_inputs.redrawn_counts(0, CLIENT_THREAT)[0]
    by_server = audit_inputs.redrawn_counts(0, SERVER_THREAT)[0]
    labels, rows = audit_inputs.partition(0).pool.labels, audit_inputs.partition(0).rows[0]
    own = labels[rows[0]].bincount(minlength=10)
    assert torch.equal(by_client[0], own.expand(REDRAWN_PARTITIONS, 10))
    assert len(by_server[0].unique(dim=0)) > REDRAWN_PARTITIONS / 2
    for counts in (by_client, by_server):
        assert len(counts[1].unique(dim=0)) > REDRAWN_PARTITIONS / 2
        assert {len(rows[1])} == set(counts[1].sum(1).tolist())


def test_threats_with_the_same_observing_clients_share_their_partitions() -> None:
    audit_inputs = inputs_for(SMALL)
    other = replace_attacks(CLIENT_THREAT, SERVER_THREAT)
    assert audit_inputs.redrawn_counts(0, CLIENT_THREAT) is audit_inputs.redrawn_counts(
        0, other
    )


def test_nothing_is_drawn_for_a_question_that_needs_no_partitions() -> None:
    threat = ThreatPlan(attacks=(LossMembership(),))
    assert inputs_for(SMALL).redrawn_counts(0, threat) == ()


def replace_attacks(threat: ThreatPlan, other: ThreatPlan) -> ThreatPlan:
    """Return the threat with the attacks of another one."""
    return threat.model_copy(update={"attacks": other.attacks})
