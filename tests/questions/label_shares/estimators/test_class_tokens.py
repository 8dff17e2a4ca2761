"""Features of classes, which are permuted with the classes."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.questions.label_shares.estimators.class_tokens import (
    ProbeReadings,
    class_matrices,
    class_tokens,
)

KINDS = 15
FEATURES = 5


def readings(classes: int, clients: int = 2, *, told: bool = False) -> ProbeReadings:
    """Return random readings with the shapes of the probes."""
    generator = Seed(classes).generator()

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    return ProbeReadings(
        draw(clients, classes, FEATURES + 1),
        draw(clients, 2 * classes + 1, classes),
        draw(2 * classes + 1, classes),
        draw(clients, 3 * classes + 2, classes),
        draw(clients) if told else None,
    )


def renamed(known: ProbeReadings, new: Tensor) -> ProbeReadings:
    """Return the readings after a permutation in which new class i is old class new[i]."""
    classes = len(new)
    rows = torch.cat((new, classes + new, torch.tensor([2 * classes])))
    pairs = torch.cat((new, classes + new, 2 * classes + new))
    common = torch.tensor([3 * classes, 3 * classes + 1])
    return ProbeReadings(
        known.last_layer_change[:, new],
        known.outputs[:, rows][..., new],
        known.broadcast_outputs[rows][:, new],
        known.class_gradients[:, torch.cat((pairs, common))][..., new],
        known.log_sizes,
    )


def of_class(matrix: list[list[float]]) -> list[list[float]]:
    return class_tokens(torch.tensor(matrix)[None, :, :, None])[0].tolist()


class TestTokens:
    def test_a_token_has_diagonal_column_and_row(self):
        # Class 0 of ((1, 2, 3), (4, 5, 6), (7, 8, 9)): itself 1; below it 4 and 7, mean 5.5;
        # beside it 2 and 3, mean 2.5.
        assert of_class([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]]) == [
            [1, 5.5, 7, 4, 2.5, 3, 2],
            [5, 5, 8, 2, 5, 6, 4],
            [9, 4.5, 6, 3, 7.5, 8, 7],
        ]

    def test_with_two_classes_the_other_is_mean_largest_and_smallest(self):
        assert of_class([[1.0, 2], [3, 4]]) == [[1, 3, 3, 3, 2, 2, 2], [4, 2, 2, 2, 3, 3, 3]]

    @given(st.integers(2, 7).flatmap(lambda classes: st.permutations(range(classes))))
    def test_permuting_classes_permutes_tokens(self, order):
        new, known = torch.tensor(order), readings(len(order))
        before = class_tokens(class_matrices(known))
        after = class_tokens(class_matrices(renamed(known, new)))
        assert before.shape == (2, len(order), 7 * KINDS)
        torch.testing.assert_close(after, before[:, new], rtol=1e-4, atol=1e-4)


class TestMatrices:
    def test_an_unchanged_client_has_zeros_except_for_the_broadcast(self):
        known = readings(3)
        still = replace(
            known,
            last_layer_change=torch.zeros_like(known.last_layer_change),
            outputs=known.broadcast_outputs.expand_as(known.outputs),
            class_gradients=torch.zeros_like(known.class_gradients),
        )
        matrices = class_matrices(still)
        start = known.broadcast_outputs[3:6].expand(2, 3, 3)
        softmax, before = matrices[..., 1], matrices[..., 3]
        assert softmax.equal(start)
        assert before.equal(start)
        rest = [kind for kind in range(KINDS) if kind not in {1, 3}]
        assert float(matrices[..., rest].abs().max()) < 1e-6

    def test_common_factors_are_normalised_to_shares(self):
        pull = torch.zeros(1, 8, 2)
        pull[0, 6:] = torch.tensor([[0.1, 0.3], [2.0, -1.0]])
        known = readings(2, 1)
        shares = class_matrices(replace(known, class_gradients=pull))
        # 0.1 and 0.3 of 0.4; 2 and -1 of 1. A row is a class's, whatever the output.
        expected = [[0.25, 0.25], [0.75, 0.75]], [[2.0, 2.0], [-1.0, -1.0]]
        torch.testing.assert_close(shares[0, :, :, -2], torch.tensor(expected[0]))
        torch.testing.assert_close(shares[0, :, :, -1], torch.tensor(expected[1]))

    def test_factors_that_nearly_cancel_give_bounded_shares(self):
        pull = torch.zeros(1, 8, 2)
        pull[0, 6] = torch.tensor([1.0, -0.99])
        known = readings(2, 1)
        shares = class_matrices(replace(known, class_gradients=pull))
        assert shares[0, :, 0, -2].tolist() == [2, -2]

    def test_row_similarity_does_not_depend_on_length(self):
        known = readings(3)
        longer = replace(known, last_layer_change=10 * known.last_layer_change)
        near, far = class_matrices(known)[..., 5], class_matrices(longer)[..., 5]
        torch.testing.assert_close(far, near, rtol=1e-4, atol=1e-6)
        # Their diagonal, the squares of the rows, is a whole.
        assert near.diagonal(dim1=1, dim2=2).sum(1).tolist() == pytest.approx([1, 1])

    def test_logits_are_centred(self):
        known = readings(3)
        answers = known.outputs.clone()
        answers[:, :3] += 7
        lifted = class_matrices(replace(known, outputs=answers))
        torch.testing.assert_close(lifted, class_matrices(known), rtol=1e-4, atol=1e-4)
