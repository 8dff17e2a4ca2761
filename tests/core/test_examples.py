"""Examples: each input with its label."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import TypeCheckError

from overheard.core.examples import Examples, concatenate_examples, without_classes


def test_refuses_an_input_without_a_label():
    with pytest.raises((ValueError, TypeCheckError)):  # the latter in `make check-types`
        Examples(torch.zeros(3, 1), torch.zeros(2, dtype=torch.long))


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


def test_refuses_an_input_without_a_number():
    with pytest.raises((ValueError, TypeCheckError)):
        without_classes(torch.zeros(3, 1), torch.zeros(2, 1))
