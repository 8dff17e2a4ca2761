"""A perceptron with one or several heads."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from overheard.core.seeds import Seed
from overheard.linkage.multi_head_mlp import UNLABELLED, MultiHeadMlp, fit_multi_head_mlp

CLASSES = 3


def clouds(each: int = 20) -> tuple[torch.Tensor, torch.Tensor]:
    labels = torch.arange(CLASSES).repeat(each)
    noise = torch.randn(len(labels), 5, generator=Seed(1).generator())
    return torch.eye(5)[labels] * 4 + noise, labels


def accuracy(
    heads: MultiHeadMlp, vectors: torch.Tensor, labels: torch.Tensor, head: int = 0
) -> float:
    predicted = heads.log_probabilities(vectors)[head].argmax(1)
    return float((predicted == labels).float().mean())


class TestFitHeads:
    def test_each_question_has_its_own_head(self):
        vectors, labels = clouds()
        first = (labels == 0).long()
        heads = fit_multi_head_mlp(vectors, [labels, first], [CLASSES, 2], Seed(0), steps=300)
        assert [each.shape[1] for each in heads.log_probabilities(vectors)] == [CLASSES, 2]
        assert accuracy(heads, vectors, labels) > 0.9
        assert accuracy(heads, vectors, first, head=1) > 0.9

    # Three updates of five numbers are trained on their coordinates.
    @pytest.mark.parametrize("count", [60, 3])
    def test_a_step_follows_the_gradient_of_the_summed_losses(self, count: int):
        vectors, labels = (each[:count] for each in clouds())
        first = torch.where(labels == 0, 1, UNLABELLED)
        tiny, rate = 1e-12, 0.5

        def after_one_step(by: float) -> MultiHeadMlp:
            return fit_multi_head_mlp(
                vectors,
                [labels, first],
                [CLASSES, 2],
                Seed(0),
                rate=by,
                steps=1,
                batch=len(vectors),
            )

        start, end = (
            dict(after_one_step(by).network.named_parameters()) for by in (tiny, rate)
        )
        network = after_one_step(tiny).network.requires_grad_(True)
        network.zero_grad()
        logits = network(vectors)
        # A third of the updates have a label for the second head: their sum is still divided
        # by the size of the batch.
        known = first != UNLABELLED
        loss = (
            cross_entropy(logits[0], labels) + cross_entropy(logits[1][known], first[known]) / 3
        )
        loss.backward()
        for name, parameter in network.named_parameters():
            torch.testing.assert_close(end[name], start[name] - rate * parameter.grad)

    def test_the_rate_decays_as_in_keras(self):
        # Two steps on the same batch without momentum; of the second, 1 / (1 + decay) of it is
        # taken: with decay 1e9 none is left.
        vectors, labels = clouds()
        settings = {"momentum": 0.0, "batch": len(vectors), "rate": 0.1}
        one = fit_multi_head_mlp(vectors, [labels], [CLASSES], Seed(0), steps=1, **settings)
        two = fit_multi_head_mlp(
            vectors, [labels], [CLASSES], Seed(0), steps=2, decay=1e9, **settings
        )
        torch.testing.assert_close(
            one.log_probabilities(vectors)[0], two.log_probabilities(vectors)[0]
        )

    def test_refuses_labels_without_a_head(self):
        vectors, labels = clouds()
        with pytest.raises(ValueError, match="each head needs its labels"):
            fit_multi_head_mlp(vectors, [labels], [CLASSES, 2], Seed(0), steps=300)

    def test_refuses_to_fit_without_updates(self):
        with pytest.raises(ValueError, match="at least one update"):
            fit_multi_head_mlp(
                torch.empty(0, 5), [torch.empty(0, dtype=torch.long)], [2], Seed(0)
            )
