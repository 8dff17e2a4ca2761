"""What a cohort's models answer."""

from itertools import islice

import pytest
import torch

from overheard.core.examples import Examples
from overheard.core.seeds import Seed
from overheard.learning.evaluate import accuracy, logits_of_cohort
from overheard.learning.initial import initial_weights
from tests.learning.cases import CONVOLUTIONS, IMAGES, MLP, TABLE, TEXTS, WORDS, pool_of


@pytest.mark.parametrize(
    ("build", "task"), [(MLP, TABLE), (CONVOLUTIONS, IMAGES), (WORDS, TEXTS)]
)
def test_gives_each_models_logits_in_order(build, task):
    inputs = pool_of(task, torch.float32).inputs
    cohort = [initial_weights(build, Seed(n)) for n in range(20)]
    answers = list(logits_of_cohort(build, cohort, inputs, batch=7))
    assert len(answers) == 20
    for weights, answer in zip(cohort, answers, strict=True):
        model = build()
        model.load_state_dict(weights)
        torch.testing.assert_close(answer, model(inputs).detach())


def test_reads_a_cohort_only_a_few_models_ahead():
    read = []

    def cohort():
        for number in range(1000):
            read.append(number)
            yield initial_weights(MLP, Seed(0))

    inputs = pool_of(TABLE, torch.float32).inputs
    list(islice(logits_of_cohort(MLP, cohort(), inputs), 1))
    assert len(read) < 100


def test_logits_may_be_learned_from():
    inputs = pool_of(IMAGES, torch.float32).inputs
    (logits,) = logits_of_cohort(CONVOLUTIONS, [initial_weights(CONVOLUTIONS, Seed(0))], inputs)
    scale = torch.ones(3, requires_grad=True)
    (logits * scale).sum().backward()
    assert scale.grad is not None


def test_accuracy_is_the_share_of_right_answers():
    # Class b alone has an offset, so every answer is b: right for 2 labels of 4.
    weights = {n: torch.zeros_like(w) for n, w in initial_weights(MLP, Seed(0)).items()}
    weights["5.bias"] = torch.tensor([0.0, 1.0, 0.0])
    examples = Examples(torch.zeros(4, 6), torch.tensor([1, 0, 1, 2]))
    assert accuracy(MLP, weights, examples) == 0.5
