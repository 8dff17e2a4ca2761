"""What a run computes: task, recipe and devices."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import TypeCheckError

from overheard.core import compute_settings
from overheard.core.compute_settings import OutputCache
from overheard.core.examples import Examples, concatenate_examples, without_classes
from overheard.core.knowledge import Knowledge
from overheard.core.recipe import Recipe
from overheard.core.task import Task, TaskKind


@pytest.mark.parametrize(
    ("shape", "names", "kind", "words"),
    [
        *(((2,), names, "classification", "2 classes or more") for names in ((), ("only",))),
        *((shape, ("a", "b"), "classification", "1 or more") for shape in ((), (0,), (3, -1))),
        ((2,), ("a",) * (2**18 + 1), "classification", "at most 262144 outputs, got 262145"),
        ((1,) * 9, ("a", "b"), "classification", "at most 8 axes, got 9"),
        ((2**31, 2), ("a", "b"), "classification", "at most 2147483648 numbers"),
        ((2,), (), "multi_label", "a name for each output"),
        ((2,), (), "regression", "a name for each output"),
    ],
)
def test_refuses_an_impossible_task(
    shape: tuple[int, ...], names: tuple[str, ...], kind: TaskKind, words: str
):
    with pytest.raises(ValueError, match=words):
        Task(shape, names, kind=kind)


@given(st.integers(0, 10_000), st.integers(1, 500), st.integers(1, 20))
def test_every_example_is_seen_once_an_epoch(examples: int, batch: int, epochs: int):
    steps = Recipe(rate=1.0, epochs=epochs, batch=batch).steps(examples)
    assert (steps - epochs) * batch < examples * epochs or examples == 0
    assert steps * batch >= examples * epochs


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"rate": 0.0}, "rate"),
        ({"rate": -0.1}, "rate"),
        ({"rate": math.inf}, "rate"),
        ({"rate": 1e300}, "rate"),
        ({"epochs": 0}, "epochs"),
        ({"batch": 0}, "batch"),
        ({"momentum": 1.0}, "momentum"),
        ({"momentum": -0.1}, "momentum"),
        ({"momentum": 0.9, "optimizer": "adam"}, "remove it for adam"),
        ({"momentum": 0.9, "optimizer": "adamw"}, "remove it for adamw"),
        ({"weight_decay": -1e-4}, "weight_decay"),
        ({"label_smoothing": -0.1}, "label_smoothing"),
        ({"label_smoothing": 1.0}, "label_smoothing"),
        ({"proximal": -1.0}, "proximal"),
        ({"label_smoothing": 0.1, "loss": "squared_error"}, "remove it for squared_error"),
    ],
    ids=str,
)
def test_refuses_settings_out_of_range(settings: dict[str, Any], word: str):
    whole: dict[str, Any] = {"rate": 0.1, "epochs": 1, "batch": 8} | settings
    with pytest.raises(ValueError, match=word):
        Recipe(**whole)


def test_steps_follow_the_epochs_of_a_client():
    # Two batches of 4 per epoch of 5 examples.
    recipe = Recipe(rate=0.1, epochs=3, batch=4)
    assert (recipe.steps(5), recipe.steps(5, 1)) == (6, 2)


def test_refuses_an_input_without_a_label():
    # The latter error in `make check-types`.
    with pytest.raises((ValueError, TypeCheckError)):
        Examples(torch.zeros(3, 1), torch.zeros(2, dtype=torch.long))
    with pytest.raises((ValueError, TypeCheckError)):
        without_classes(torch.zeros(3, 1), torch.zeros(2, 1))


@given(st.lists(st.integers(0, 5), max_size=30), st.randoms())
def test_counts_do_not_depend_on_the_order_and_sum_to_the_length(labels: list[int], random):
    examples = Examples(torch.zeros(len(labels), 1), torch.tensor(labels, dtype=torch.long))
    order = list(range(len(labels)))
    random.shuffle(order)
    shuffled = examples.take(torch.tensor(order, dtype=torch.long))
    assert shuffled.label_counts(6).tolist() == examples.label_counts(6).tolist()
    assert int(examples.label_counts(6).sum()) == len(labels)


def test_numbers_in_place_of_classes_follow_their_inputs():
    two = without_classes(torch.tensor([[1.0], [2.0]]), torch.tensor([[0.5, 1.0], [0.0, 3.0]]))
    assert two.labels.tolist() == [0, 0]
    assert two.take(torch.tensor([1])).loss_labels.tolist() == [[0.0, 3.0]]
    both = concatenate_examples((two, two.take(torch.tensor([True, False]))))
    assert both.loss_labels.tolist() == [[0.5, 1.0], [0.0, 3.0], [0.5, 1.0]]
    assert both.to("cpu").loss_labels.tolist() == both.loss_labels.tolist()
    assert len(two.tensors()) == 3


ONES = np.ones((2, 2))


class Weights(dict[str, torch.Tensor]):
    """Weights to which weak references are possible."""


def test_outputs_are_those_of_this_update_to_this_broadcast() -> None:
    cache, start, delta = OutputCache(), Weights(), Weights()
    cache.save(("model",), start, delta, ONES)
    assert cache.load(("model",), start, delta) is ONES
    # Equal weights are other messages.
    assert cache.load(("model",), start, Weights()) is None
    assert cache.load(("model",), Weights(), delta) is None


def test_outputs_of_another_basis_are_dropped() -> None:
    cache, start, delta = OutputCache(), Weights(), Weights()
    first, second = [1], [1]  # equal, but not the same
    cache.save((first,), start, delta, ONES)
    assert cache.load((second,), start, delta) is None
    cache.save((second,), start, start, ONES)
    assert cache.load((first,), start, delta) is None
    assert cache.load((second,), start, delta) is None


def test_a_message_that_is_gone_is_not_taken_for_another() -> None:
    cache, start = OutputCache(), Weights()
    for _ in range(100):  # memory is used again, and so are the numbers of objects
        delta = Weights()
        assert cache.load((), start, delta) is None
        cache.save((), start, delta, ONES)
        del delta


def test_the_oldest_outputs_leave_the_limited_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compute_settings, "CACHED_BYTES", 3 * (ONES.nbytes + 512))
    cache, start, deltas = OutputCache(), Weights(), [Weights() for _ in range(5)]
    for delta in deltas:
        cache.save((), start, delta, ONES)
    kept = [cache.load((), start, delta) is ONES for delta in deltas]
    assert kept == [False] * 2 + [True] * 3


def test_nothing_is_sent_to_other_processes() -> None:
    cache, start = OutputCache(), Weights()
    cache.save((), start, start, ONES)
    build, arguments = cache.__reduce__()
    assert build(*arguments).load((), start, start) is None


@pytest.mark.parametrize("classes", [1, 0, -1])
def test_refuses_fewer_than_two_labels(classes: int):
    with pytest.raises(ValueError, match="2 classes or more"):
        Knowledge(classes)


def test_a_task_without_classes_counts_all_examples_as_alike():
    known = Knowledge(classes=1, kind="regression")
    assert not known.has_classes
    with pytest.raises(ValueError, match="has no classes, got 2"):
        Knowledge(classes=2, kind="multi_label")
