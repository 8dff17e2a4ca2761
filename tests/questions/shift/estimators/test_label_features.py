import math

import pytest
import torch
from torch import nn

from overheard.core.examples import Examples
from overheard.questions.shift.attacks.shift_tracking import label_features

HELD_OUT = Examples(torch.eye(2), torch.tensor([0, 1]))


def build() -> nn.Module:
    return nn.Linear(2, 2)


def weights(rows: list[list[float]], bias: list[float]) -> dict[str, torch.Tensor]:
    return {"weight": torch.tensor(rows), "bias": torch.tensor(bias)}


def test_by_hand_for_two_labels() -> None:
    start = weights([[0.0, 0.0], [0.0, 0.0]], [0.0, 0.0])
    delta = weights([[1.0, 0.0], [0.0, 1.0]], [0.5, -0.5])
    (read,) = label_features(build, [start], [delta], HELD_OUT)
    # Logits of the example of label 0 after the update are (1.5, -0.5), of label 1 (0.5, 0.5).
    # Relative to the mean over labels: (1, -1) and (0, 0).
    high = 1 / (1 + math.exp(-2)) - 0.5
    assert read[0].tolist() == pytest.approx([0.5, 0.5, high, 0.0, 1.0, 0.0, 0.0, 0.0])
    assert read[1].tolist() == pytest.approx([0.5, -0.5, 0.0, -high, 0.0, -1.0, 0.0, 0.0])


def test_an_update_of_zeros_changes_nothing_and_keeps_the_softmax_before() -> None:
    start = weights([[3.0, 0.0], [0.0, 1.0]], [0.0, 0.0])
    still = weights([[0.0, 0.0], [0.0, 0.0]], [0.0, 0.0])
    (read,) = label_features(build, [start], [still], HELD_OUT)
    assert not bool(read[:, :6].any())
    before = 1 / (1 + math.exp(-3)) - 0.5
    assert float(read[0, 6]) == pytest.approx(before, abs=1e-6)


def test_pairs_are_read_one_by_one_or_together_alike() -> None:
    starts = [weights([[0.1 * k, 0.0], [0.0, 0.2]], [0.0, 0.1 * k]) for k in range(3)]
    deltas = [weights([[0.0, 0.3 * k], [0.1, 0.0]], [0.1, 0.0]) for k in range(3)]
    together = label_features(build, starts, deltas, HELD_OUT)
    alone = [
        label_features(build, [start], [delta], HELD_OUT)[0]
        for start, delta in zip(starts, deltas, strict=True)
    ]
    assert torch.allclose(together, torch.stack(alone), atol=1e-6)
