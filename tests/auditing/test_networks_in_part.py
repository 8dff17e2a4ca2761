"""Attacks on models with batch norm, or that are frozen in part, run or say why they do not."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from overheard.auditing.run import audit
from overheard.core.task import Task
from overheard.data.partition.candidates import CandidateSettings
from overheard.learning.models.own import Own
from overheard.plans.plan import ThreatPlan, TrainingPlan
from overheard.questions.label_shares.attacks.bias_inversion import BiasInversion
from overheard.questions.label_shares.attacks.decaf import Decaf
from overheard.questions.label_shares.attacks.ilrg import Ilrg
from overheard.questions.label_shares.attacks.llg import Llg
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax
from overheard.questions.label_shares.attacks.ramakrishna import Ramakrishna
from overheard.questions.label_shares.attacks.zlg import Zlg
from overheard.questions.membership.attacks.fed_mia import FedMia
from overheard.questions.membership.attacks.gradient_membership import GradientMembership
from overheard.questions.membership.attacks.lira import Lira
from overheard.questions.membership.attacks.loss_membership import LossMembership
from tests.auditing.conftest import HERE
from tests.auditing.plans import DATA, TINY, replace_tables

LAST_LAYER = (BiasInversion(), Decaf(), Ilrg(), Llg(), Ramakrishna(), Zlg())
"""Attacks that read the last layer."""

WHOLE = (
    MeanSoftmax(),
    FedMia(),
    FedMia(evidence="confidence"),
    GradientMembership(models=8, trainings=0),
    Lira(models=8),
    LossMembership(),
)
"""Attacks that read all that is sent, or outputs."""


class Adapter(nn.Module):
    """A frozen matrix with an adapter, and no layer of torch's own."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.randn(outputs, inputs) / 8, requires_grad=False)
        self.reduce = nn.Parameter(torch.randn(2, inputs) / 8)
        self.expand = nn.Parameter(torch.zeros(outputs, 2))

    def forward(self, inputs: Tensor) -> Tensor:
        """Apply the matrix plus the product of the adapter."""
        outputs: Tensor = inputs @ (self.matrix + self.expand @ self.reduce).T
        return outputs


def normed(task: Task) -> nn.Module:
    """A batch norm between two layers."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, task.classes)
    )


def adapted(task: Task) -> nn.Module:
    """An adapter under a trained last layer."""
    return nn.Sequential(nn.Flatten(), Adapter(64, 8), nn.ReLU(), nn.Linear(8, task.classes))


def adapted_to_the_top(task: Task) -> nn.Module:
    """Adapters alone."""
    return nn.Sequential(nn.Flatten(), Adapter(64, 8), nn.ReLU(), Adapter(8, task.classes))


@pytest.mark.slow
@pytest.mark.parametrize("builder", ["normed", "adapted", "adapted_to_the_top"])
def test_each_attack_claims_something_or_names_the_last_layer(builder: str, tmp_path: Path):
    model = Own(f"tests.auditing.test_networks_in_part:{builder}")
    threats = (ThreatPlan(attacks=(*LAST_LAYER, *WHOLE), by_round=False),)
    training = TrainingPlan(model=model, rounds=1, rate=0.1, batch=10)
    data = DATA.model_copy(
        update={
            "candidates": CandidateSettings(members=5, outsiders=5),
            "auxiliary_per_class": 8,
        }
    )
    plan = replace_tables(TINY, data=data, training=training, threats=threats)
    found = audit(plan, tmp_path / "out", resources=HERE)
    claimed = {one.cell.settings for one in found.findings}
    refused = {one.cell.settings: one.missing[0] for one in found.refusals}
    with_last_layer = set(map(repr, LAST_LAYER))
    if builder == "adapted_to_the_top":
        assert set(refused) == with_last_layer
        assert all("has no nn.Linear" in reason for reason in refused.values())
        assert claimed == set(map(repr, WHOLE))
    else:
        assert refused == {}
        assert claimed == with_last_layer | set(map(repr, WHOLE))
