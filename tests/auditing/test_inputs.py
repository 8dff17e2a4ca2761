"""Partitions drawn anew keep what observers hold, and each way to read data has a digest."""

from pathlib import Path

import torch

from overheard.auditing.inputs import AuditInputs
from overheard.core.compute_settings import MemoryTensorCache
from overheard.data.dataset_digest import dataset_digest
from overheard.data.datasets.own import Own
from overheard.data.splits.quantity import Quantity
from overheard.findings.planned_sizes import REDRAWN_PARTITIONS
from overheard.plans.plan import ThreatPlan
from overheard.questions.label_shares.statistics.share_fits import redrawn_share_fits
from overheard.questions.membership.attacks.loss_membership import LossMembership
from tests.auditing.conftest import HERE, inputs_for
from tests.auditing.plans import (
    CLIENT_THREAT,
    DATA,
    SERVER_THREAT,
    SMALL,
    TINY,
    replace_tables,
)


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


def test_what_an_observer_concludes_from_its_own_labels_is_no_leak() -> None:
    # Clients 0 and 1 share one list of the ten labels, five each: client 0 knows the labels of
    # client 1 without hearing anything. Its claim fits the truth no better than new partitions.
    data = DATA.model_copy(update={"split": Quantity(5)})
    audit_inputs = inputs_for(replace_tables(SMALL, data=data))
    partition = audit_inputs.partition(0)
    held = [partition.pool.labels[rows].bincount(minlength=10) for rows in partition.rows[0]]
    claim = (held[0] == 0).double() / 5
    p_values = {}
    for threat in (CLIENT_THREAT, SERVER_THREAT):
        redrawn = audit_inputs.redrawn_counts(0, threat)[0][1]
        shares = torch.cat([held[1][None], redrawn]).double() / held[1].sum()
        fits = redrawn_share_fits(claim[None, None].numpy(), shares[:, None].numpy())[:, 0]
        p_values[threat.observers] = float((fits >= fits[0] - 1e-9).mean())
    assert p_values[CLIENT_THREAT.observers] == 1.0
    assert p_values[SERVER_THREAT.observers] < 0.025


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


def test_a_file_that_is_read_in_two_ways_has_two_digests(tmp_path: Path) -> None:
    path = tmp_path / "spare.csv"
    lines = [f"{one % 10},{one % 10 / 9},{one}" for one in range(600)]
    path.write_text("\n".join(("label,a,b", *lines)))
    audited, other = Own(str(path)), Own(str(path), label="a", task="regression")
    datasets = [source.load(tmp_path) for source in (audited, other)]
    plan = replace_tables(TINY, data=TINY.data.model_copy(update={"source": audited}))
    inputs = AuditInputs(plan, datasets[0], {other: datasets[1]}, HERE, MemoryTensorCache())
    assert inputs.data_digests() == {
        str(path): dataset_digest(datasets[0]),
        repr(other): dataset_digest(datasets[1]),
    }
