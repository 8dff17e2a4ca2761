"""Partitions drawn anew keep what observers hold, and each way to read data has a digest."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from overheard.auditing.inputs import AuditInputs, draw_external_auxiliary
from overheard.core.compute_settings import MemoryTensorCache
from overheard.core.errors import PlanError
from overheard.core.examples import Examples, without_classes
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.data.dataset import Dataset
from overheard.data.dataset_digest import dataset_digest
from overheard.data.datasets.own import Own
from overheard.data.partition.reserved_examples import AuxiliarySize
from overheard.data.splits.quantity import Quantity
from overheard.findings.planned_sizes import REDRAWN_PARTITIONS
from overheard.plans.plan import ThreatPlan
from overheard.questions.label_shares.statistics.re_paired_shares import redrawn_share_fits
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


TASK = Task((2,), ("cat", "dog"))


def numbered(numbers: list[int]) -> Examples:
    """Each input is its number twice; its label says whether the number is odd."""
    column = torch.tensor(numbers)
    return Examples(column[:, None].repeat(1, 2).float(), column % 2)


AUDITED = Dataset(numbered([0, 1, 2, 3]), numbered([4, 5]), TASK)
OTHER = Dataset(numbered([0, 1, 4, 5, 10, 11, 12, 13, 15]), numbered([20]), TASK)
"""Four of its examples are in the audited data; the others are 10 and 12, and 11, 13, 15."""


def draw(size: AuxiliarySize, seed: int = 0) -> Examples:
    return draw_external_auxiliary(OTHER, AUDITED, size, Seed(seed), "auxiliary_from here")


def numbers(examples: Examples) -> list[int]:
    return sorted(examples.inputs[:, 0].int().tolist())


def test_draws_the_requested_number_per_class_and_no_audited_example():
    examples = draw(AuxiliarySize(per_class=2))
    assert examples.label_counts(2).tolist() == [2, 2]
    assert {10, 12} < set(numbers(examples)) < {10, 11, 12, 13, 15}


def test_draws_a_total_with_the_label_shares_of_the_source():
    # 4 even and 5 odd among its 9; of 2, one each
    assert draw(AuxiliarySize(total=2)).label_counts(2).tolist() == [1, 1]


def test_draws_other_examples_under_another_seed():
    assert {tuple(numbers(draw(AuxiliarySize(per_class=1), n))) for n in range(20)} == {
        (even, odd) if even < odd else (odd, even) for even in (10, 12) for odd in (11, 13, 15)
    }


def test_says_which_label_has_too_few_examples_and_what_to_do():
    with pytest.raises(
        PlanError,
        match="auxiliary_from here: 3 examples with label 'cat' are needed, but the data set "
        "has only 2 that are not in the audited data: ask for fewer",
    ):
        draw(AuxiliarySize(per_class=3))


@pytest.mark.parametrize(
    "task",
    [Task((2,), ("cat", "dog", "cow")), Task((2,), ("cat", "dog"), vocabulary=9)],
    ids=["classes", "vocabulary"],
)
def test_refuses_a_data_set_of_another_form(task: Task):
    inputs = OTHER.train.inputs
    part = Examples(inputs if task.vocabulary is None else inputs.long() % 9,
                    OTHER.train.labels)  # fmt: skip
    other = replace(OTHER, train=part, test=part, task=task)
    with pytest.raises(
        PlanError, match=r"auxiliary_from here: has .*a data set of the same form"
    ):
        draw_external_auxiliary(
            other, AUDITED, AuxiliarySize(per_class=1), Seed(0), "auxiliary_from here"
        )


def test_refuses_a_data_set_of_another_kind():
    rows = torch.tensor([[0.0, 1.0], [1.0, 1.0]])
    several = without_classes(torch.tensor([[7.0, 7.0], [8.0, 8.0]]), rows)
    other = Dataset(several, several, Task((2,), ("cat", "dog"), kind="multi_label"))
    with pytest.raises(PlanError, match=r"2 labels and .* have .* 2 classes"):
        draw_external_auxiliary(other, AUDITED, AuxiliarySize(total=1), Seed(0), "here")
