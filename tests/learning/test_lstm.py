"""The LSTM against its equations, and the effect of padding."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from overheard.core.messages import Weights
from overheard.core.recipe import Recipe
from overheard.learning.engines.sequential import SequentialTrainer
from overheard.learning.evaluate import logits_of_models
from overheard.learning.features import features_of_models
from overheard.learning.initialization import model_at
from overheard.learning.train import train_cohort
from overheard.learning.training_job import TrainingJob
from overheard.questions.shift.estimators.model_comparisons import representations_of_models
from tests.learning.cases import (
    CLIENTS,
    READING,
    RECIPES,
    SEED,
    TEXTS,
    largest_difference,
    plain_loop,
    pool_of,
    start_of,
)


def state_after(words: list[int], weights: Weights) -> Tensor:
    """The state after some words, by Hochreiter and Schmidhuber's equations with a forget gate.

    Gates stand in torch's order: input, forget, what is written, output.
    """
    hidden = cell = torch.zeros(5, dtype=torch.float64)
    for word in words:
        gates = (
            weights["recurrence.weight_ih_l0"] @ weights["table.weight"][word]
            + weights["recurrence.bias_ih_l0"]
            + weights["recurrence.weight_hh_l0"] @ hidden
            + weights["recurrence.bias_hh_l0"]
        )
        taken, kept, written, given_out = gates.chunk(4)
        cell = kept.sigmoid() * cell + taken.sigmoid() * written.tanh()
        hidden = given_out.sigmoid() * cell.tanh()
    return hidden


def logits_of(texts: list[list[int]]) -> Tensor:
    (logits,) = logits_of_models(READING, [start_of(READING)], torch.tensor(texts))
    return logits


@given(st.lists(st.integers(1, 29), min_size=1, max_size=7), st.integers(0, 4))
def test_logits_do_not_depend_on_the_length_of_the_padding(words, padding):
    weights = start_of(READING)
    expected = weights["last.weight"] @ state_after(words, weights) + weights["last.bias"]
    (logits,) = logits_of([words + [0] * padding])
    torch.testing.assert_close(logits, expected, atol=1e-12, rtol=0)


def test_texts_of_unequal_length_have_the_same_logits_in_a_batch_as_alone():
    texts = [[3, 4, 5, 6], [7, 0, 0, 0], [8, 9, 0, 0]]
    alone = [logits_of([text])[0] for text in texts]
    torch.testing.assert_close(logits_of(texts), torch.stack(alone), atol=1e-12, rtol=0)


def test_a_text_without_words_is_like_one_padding_token():
    # Padding has a vector of zeros, so only the biases speak.
    weights = start_of(READING)
    expected = weights["last.weight"] @ state_after([0], weights) + weights["last.bias"]
    torch.testing.assert_close(logits_of([[0, 0, 0]])[0], expected, atol=1e-12, rtol=0)


def test_the_state_after_the_last_word_is_a_layer_output_and_the_input_of_the_last_layer():
    weights, texts = start_of(READING), pool_of(TEXTS, torch.float64).inputs
    (outputs_by_layer,) = representations_of_models(READING, [weights], texts)
    (features,) = features_of_models(READING, [weights], texts)
    torch.testing.assert_close(outputs_by_layer["end"], features, atol=1e-12, rtol=0)


@pytest.mark.parametrize(("recipe", "is_sparse"), [("sgd", True), ("momentum", False)])
def test_a_step_of_plain_sgd_changes_only_the_looked_up_rows(recipe, is_sparse):
    # Momentum and weight decay move rows that a batch does not hold.
    network = READING()
    pool = pool_of(TEXTS, torch.float32)
    start = start_of(READING, torch.float32)
    SequentialTrainer(
        TrainingJob(READING, start, pool, RECIPES[recipe], SEED, 0, torch.device("cpu")),
        network,
    )
    table = dict(network.named_parameters())["table.weight"]
    (slope,) = torch.autograd.grad(network(torch.tensor([[5, 6, 5, 0]])).sum(), [table])
    assert slope.is_sparse == is_sparse
    if is_sparse:
        assert slope.coalesce().indices().flatten().tolist() == [5, 6]


def test_single_precision_follows_the_exact_gradient():
    # Another code in torch than that for double precision. One step at a rate of 1.
    recipe = Recipe(rate=1.0, epochs=1, batch=64)
    exact, pool = start_of(READING), pool_of(TEXTS, torch.float32)
    start = {name: weight.float() for name, weight in exact.items()}
    (each,) = train_cohort(
        READING, start, pool, CLIENTS[2:3], recipe, seed=SEED, round=3, engine="sequential"
    )
    gradient, _ = plain_loop(READING, exact, pool, CLIENTS[2], recipe)
    assert largest_difference(each.delta, gradient) < 1e-6


def test_cudnn_is_off_where_it_cannot_differentiate():
    """It refuses the backward pass of a recurrent layer that is in evaluation."""
    model, seen = model_at(READING, start_of(READING), "cpu"), list[bool]()

    def look(*_: object) -> None:
        seen.append(torch.backends.cudnn.enabled)

    model.recurrence.register_forward_pre_hook(look)
    model.end.register_forward_pre_hook(look)
    model(pool_of(TEXTS, torch.float64).inputs)
    with pytest.raises(ValueError, match="3D"):
        model.recurrence(torch.zeros(1, 2, 3, 4))
    look()
    assert seen == [False, True, False, True]
