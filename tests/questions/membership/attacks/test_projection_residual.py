"""ProjRes asks how much of a record's input is outside of the span of a layer's update."""

from math import log

import pytest
import torch
from torch import nn

from overheard.core.errors import NeedsError
from overheard.core.examples import Examples
from overheard.core.facts import Facts
from overheard.core.knowledge import Knowledge
from overheard.core.known_facts.candidate_records import CandidateRecords
from overheard.core.seeds import Seed
from overheard.core.task import Task
from overheard.learning.initialization import initial_weights
from overheard.learning.models.transformer import Transformer
from overheard.questions.membership.attacks.projection_residual import (
    ProjectionResidual,
    first_layer_inputs,
    log_residuals,
)
from tests.questions.membership.attacks.test_lira import figure


def test_the_residual_is_what_the_rows_of_the_update_leave() -> None:
    # The rows span the first two axes, the second with a small singular value.
    update = torch.tensor([[3.0, 0.0, 0.0], [0.0, 0.003, 0.0]])
    inputs = torch.tensor([[[5.0, 0.0, 0.0]], [[0.0, 3.0, 4.0]]]).double()
    found = log_residuals(inputs, update, tolerance=1e-6)
    assert float(found[1]) == pytest.approx(log(0.8))
    assert float(found[0]) < -20
    # A tolerance above .001 leaves the first axis alone, so all of the second input remains.
    assert float(log_residuals(inputs, update, tolerance=1e-2)[1]) == pytest.approx(0.0)


def test_positions_of_a_record_are_averaged() -> None:
    update = torch.tensor([[1.0, 0.0]])
    inputs = torch.tensor([[[0.6, 0.8], [0.8, 0.6]]]).double()
    assert float(log_residuals(inputs, update, 0.1)) == pytest.approx((log(0.8) + log(0.6)) / 2)


def test_finds_all_members_where_they_are_fewer_than_the_inputs(by_heart) -> None:
    # 20 records of a client are as many as the inputs, so the smallest directions are left out.
    assert figure(by_heart, ProjectionResidual(), "membership_auc") > 0.95


def test_finds_nothing_in_an_update_of_full_rank(by_heart) -> None:
    full = figure(by_heart, ProjectionResidual(tolerance=1e-6), "membership_auc")
    assert full == pytest.approx(0.5, abs=0.05)


def knowing(build, records: Examples) -> Knowledge:
    return Knowledge(2, build, facts=Facts(CandidateRecords(records)))


def test_reads_the_adapter_of_a_frozen_layer() -> None:
    task = Task((6,), ("a", "b"), vocabulary=20)
    model = Transformer(width=8, heads=2, depth=1, rank=2)
    records = Examples(torch.randint(1, 20, (5, 6)), torch.zeros(5, dtype=torch.int64))
    known = knowing(lambda: model.build(task), records)
    weights = initial_weights(known.build_model, Seed(0))
    found = first_layer_inputs(weights, known)
    assert found.matrix.endswith(".reduce")
    assert found.values.shape == (5, 6, 8)


def test_refuses_a_model_without_a_trained_linear_layer() -> None:
    def build() -> nn.Module:
        return nn.Sequential(nn.Conv1d(1, 2, 6), nn.Flatten())

    known = knowing(build, Examples(torch.zeros(3, 1, 6), torch.zeros(3, dtype=torch.int64)))
    with pytest.raises(NeedsError, match=r"has no nn\.Linear that is trained"):
        first_layer_inputs(initial_weights(build, Seed(0)), known)
