"""Label shares of clients that keep their last layer at home."""

from pathlib import Path

import pytest
import torch
from torch import nn

from overheard.auditing.inputs import Resources
from overheard.auditing.run import audit
from overheard.core.examples import Examples
from overheard.plans.plan import parse_plan
from overheard.questions.label_shares.estimators.class_distances import ClassDistances

PLAN = """
title = "Last layers at home"
seeds = [3]
[data]
source = "digits"
split = { kind = "dirichlet", alpha = 0.3 }
clients = 6
examples = [80, 120]
auxiliary_per_class = 20
[training]
model = { kind = "mlp", hidden = [16] }
rounds = 2
rate = 0.1
epochs = 2
batch = 16
algorithm = { kind = "partial_sharing", stays = ["head"] }
[[threats]]
observers = ["server"]
attacks = [{ kind = "class_geometry", clients = 80 }, "mean_softmax"]
by_round = false
"""


def build() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))


def test_no_rotation_of_the_inputs_of_the_last_layer_changes_the_features() -> None:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(12, 2, generator=generator)
    examples = Examples(inputs, torch.arange(12) % 2)
    local = {"1.weight": torch.eye(2)}
    distances = ClassDistances(build, examples, 2, local)
    turn = torch.tensor([[0.6, -0.8], [0.8, 0.6]])
    start = {"0.weight": torch.tensor([[1.0, 0.5], [0.0, 2.0]])}
    delta = {"0.weight": torch.tensor([[0.3, 0.0], [0.1, -0.2]])}
    (plain,) = distances.of_updates(start, [delta])
    turned = [dict.fromkeys(one, turn @ one["0.weight"]) for one in (start, delta)]
    (other,) = distances.of_updates(turned[0], [turned[1]])
    torch.testing.assert_close(plain, other, atol=1e-5, rtol=1e-5)


def test_an_update_that_moves_one_class_away_shows_the_distance() -> None:
    # Class 0 is at (1, 0) and class 1 at (0, 1), two apart squared. Twice the first column puts
    # class 0 at (2, 0): five apart squared, so the distance grows by log(5 / 2).
    examples = Examples(torch.eye(2), torch.tensor([0, 1]))
    distances = ClassDistances(build, examples, 2, {"1.weight": torch.eye(2)})
    start = {"0.weight": torch.eye(2)}
    (features,) = distances.of_updates(
        start, [{"0.weight": torch.tensor([[1.0, 0.0], [0.0, 0.0]])}]
    )
    assert features[0] == pytest.approx(torch.tensor(5 / 2).log().item(), abs=1e-6)


@pytest.mark.slow
def test_label_shares_are_read_though_no_message_has_the_last_layer(tmp_path: Path) -> None:
    found = audit(
        parse_plan(PLAN, "plan"), tmp_path, resources=Resources(device="cpu", workers=1)
    )
    frame = found.to_frame()
    of_l1 = frame[(frame["score"] == "l1") & ~frame["is_control"]]
    assert len(of_l1) == 6
    assert float(of_l1["value"].mean()) < 0.7 * float(of_l1["best guess"].mean())
    # Attacks that read the last layer say that they cannot.
    refused = {one.cell.part for one in found.refusals if not one.cell.is_control}
    assert refused == {"mean_softmax"}
