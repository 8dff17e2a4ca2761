"""The mean output worked out by hand."""

import torch
from torch import nn

from overheard.core.examples import Examples
from overheard.core.knowledge import Knowledge
from overheard.core.messages import Broadcast, Message, Update
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.questions.label_shares.attacks.mean_softmax import MeanSoftmax


def build() -> nn.Module:
    return nn.Sequential(nn.Linear(1, 2))


def test_classes_have_equal_weight_for_any_number_of_examples():
    # The local model says logit(x) = (ln 3 * x, 0): x = 1 gives (3/4, 1/4), x = 0 gives 1/2
    # each. Class 0 has x = 1 twice, class 1 x = 0 once: (3/4 + 1/2) / 2 = 5/8, not the 2/3 of
    # a mean over examples.
    start = {"0.weight": torch.zeros(2, 1), "0.bias": torch.zeros(2)}
    delta = {
        "0.weight": torch.tensor([[3.0], [1.0]]).log(),
        "0.bias": torch.zeros(2),
    }
    auxiliary = Examples(torch.tensor([[1.0], [1.0], [0.0]]), torch.tensor([0, 0, 1]))
    view = View(
        frozenset({SERVER}),
        (
            Message(0, SERVER, frozenset({client(0)}), Broadcast(start)),
            Message(0, client(0), frozenset({SERVER}), Update(delta, 10)),
        ),
    )
    knowledge = Knowledge(2, build, auxiliary)
    claim = MeanSoftmax().infer(view, [client(0)], knowledge, Seed(0))[client(0)]
    torch.testing.assert_close(claim.shares, torch.tensor([0.625, 0.375]))
    assert claim.absent is None
