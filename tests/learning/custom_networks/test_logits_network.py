"""Networks of other libraries, read as one tensor in and logits out."""

import math
from collections import OrderedDict

import pytest
import torch
from torch import Tensor, nn

from overheard.core.task import Task
from overheard.learning.custom_networks.logits_network import (
    LogitsNetwork,
    as_logits_network,
    logits_of,
    vocabulary_of,
)
from overheard.learning.last_layer import find_last_layer

TEXTS = torch.tensor([[3, 1, 0, 0], [2, 2, 1, 3]])


class MeanOfWords(nn.Module):
    """As Hugging Face: `input_ids` and the mask of what is read, and an object with logits."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(4, 5)
        self.head = nn.Linear(5, 3)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> OrderedDict[str, Tensor]:
        weights = attention_mask / attention_mask.sum(1, keepdim=True)
        mean = torch.einsum("nt,ntw->nw", weights.to(torch.float32), self.words(input_ids))
        return OrderedDict(loss=mean.sum(), logits=self.head(mean))


class NextToken(nn.Module):
    """A language model whose logits are those of one table, by the token before."""

    def __init__(self, virtual: int = 0) -> None:
        super().__init__()
        self.table = nn.Embedding(4, 4)
        self.virtual = virtual

    def forward(self, tokens: Tensor) -> tuple[Tensor, None]:
        logits = self.table(tokens)
        return torch.cat((torch.ones(len(tokens), self.virtual, 4), logits), 1), None


def test_padding_changes_no_logits() -> None:
    network = as_logits_network(MeanOfWords(), Task((4,), ("a", "b", "c"), 4), None)
    short = as_logits_network(MeanOfWords(), Task((2,), ("a", "b", "c"), 4), None)
    short.load_state_dict(network.state_dict())
    torch.testing.assert_close(network(TEXTS)[:1], short(TEXTS[:1, :2]))


def test_another_token_may_be_the_padding() -> None:
    network = as_logits_network(MeanOfWords(), Task((4,), ("a", "b", "c"), 4), padding=3)
    texts = torch.tensor([[1, 3], [1, 1]])
    logits = network(texts)
    torch.testing.assert_close(logits[0], logits[1])


def test_a_text_of_padding_alone_has_finite_logits() -> None:
    network = as_logits_network(MeanOfWords(), Task((4,), ("a", "b", "c"), 4), None)
    assert bool(network(torch.zeros(1, 4, dtype=torch.int64)).isfinite().all())


def test_a_plain_network_is_left_as_it_is() -> None:
    network = nn.Linear(4, 2)
    assert as_logits_network(network, Task((4,), ("a", "b")), None) is network


def test_the_last_layer_is_still_found() -> None:
    network = as_logits_network(MeanOfWords(), Task((4,), ("a", "b", "c"), 4), None)
    assert find_last_layer(network).weight == "module.head.weight"
    assert vocabulary_of(network) == 4


@pytest.mark.parametrize("virtual", [0, 2])
def test_a_language_model_puts_out_the_mean_loss_of_a_text(virtual: int) -> None:
    model = NextToken(virtual)
    # After token 2 the model says 1 with probability 1/2, the others with 1/6 each; after 3 and
    # 1 it says all alike.
    rows = torch.zeros(4, 4)
    rows[2, 1] = math.log(3)
    with torch.no_grad():
        model.table.weight.copy_(rows)
    network = LogitsNetwork(model, padding=0, is_language_model=True)
    # Text 0 has one word after its first, with 1/4. Text 1: 2 -> 2, 2 -> 1, 1 -> 3.
    expected = torch.tensor([[math.log(4)], [(math.log(6) + math.log(2) + math.log(4)) / 3]])
    torch.testing.assert_close(network(TEXTS), expected)


def test_outputs_without_logits_are_refused() -> None:
    with pytest.raises(TypeError, match="has no logits"):
        logits_of({"hidden": torch.zeros(2)})
