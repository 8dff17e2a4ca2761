"""Discrepancies of tensors, computed by hand."""

from math import inf, isnan, nan, sqrt

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from overheard.core.seeds import Seed
from overheard.learning.evaluate import logits_of_models
from overheard.learning.initialization import initial_weights
from overheard.questions.shift.estimators.model_comparisons import (
    BLOCK_SIZE,
    central_moment_discrepancy,
    cosine,
    procrustes,
    representations_of_models,
    scaled_moment_discrepancy,
)
from tests.learning.cases import (
    CONVOLUTIONS,
    IMAGES,
    MLP,
    READING,
    TABLE,
    TEXTS,
    WORDS,
    pool_of,
)

METRICS = (cosine, procrustes, central_moment_discrepancy, scaled_moment_discrepancy)

VECTORS = st.lists(st.floats(-9, 9, width=32), min_size=4, max_size=4).map(torch.tensor)


def drawn(*shape: int, number: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=Seed(number).generator())


class TestCosine:
    def test_is_the_dot_product_over_both_norms(self):
        # (3, 4) . (4, 3) = 24, both of length 5.
        assert cosine(torch.tensor([3.0, 4.0]), torch.tensor([4.0, 3.0])) == pytest.approx(0.96)

    def test_takes_a_matrix_as_one_vector(self):
        # 1*1 + 2*0 + 0*5 + 2*1 = 3; lengths 3 and 27^(1/2).
        a, b = torch.tensor([[1.0, 2.0], [0.0, 2.0]]), torch.tensor([[1.0, 0.0], [5.0, 1.0]])
        assert cosine(a, b) == pytest.approx(3 / (3 * sqrt(27)))

    def test_is_0_with_a_zero_tensor_and_1_between_two(self):
        zero, one = torch.zeros(3), torch.ones(3)
        assert (cosine(zero, one), cosine(one, zero), cosine(zero, zero)) == (0, 0, 1)

    @given(VECTORS, VECTORS, st.integers(-3, 3), st.booleans())
    def test_is_in_its_range_for_any_norms(self, a, b, power, opposite):
        scale = 2.0**power * (-1 if opposite else 1)
        assert -1 <= cosine(a, b) <= 1
        if bool(a.any() & b.any()):
            sign = -1 if opposite else 1
            assert cosine(scale * a, b) == pytest.approx(sign * cosine(a, b), abs=1e-12)


class TestProcrustes:
    def test_a_zero_tensor_has_0_with_another_and_1_otherwise(self):
        zero, one = torch.zeros(3), torch.ones(3)
        assert procrustes(zero, zero) == 0
        assert procrustes(zero, one) == pytest.approx(1)
        assert procrustes(one, zero) == pytest.approx(1)

    @given(VECTORS, VECTORS)
    def test_follows_from_the_cosine(self, a, b):
        if bool(a.any() & b.any()):
            assert procrustes(a, b) ** 2 == pytest.approx(2 - 2 * cosine(a, b), abs=1e-9)

    def test_distinguishes_nearly_equal_directions(self):
        # 2 - 2 cosine would be lost in rounding: cosine = 1 - 5e-19.
        a = torch.tensor([1.0, 0.0], dtype=torch.float64)
        b = torch.tensor([1.0, 1e-9], dtype=torch.float64)
        assert procrustes(a, b) == pytest.approx(1e-9)


class TestCmd:
    def test_of_vectors_sums_the_differences_of_moments_of_their_entries(self):
        # Means 1 and 2. Around them (-1, 0, 0, 1) and (-2, -2, 2, 2): second moments 0.5 and
        # 4, fourth 0.5 and 16, third and fifth 0. 1 + 3.5 + 0 + 15.5 + 0 = 20.
        a, b = torch.tensor([0.0, 1.0, 1.0, 2.0]), torch.tensor([0.0, 0.0, 4.0, 4.0])
        assert central_moment_discrepancy(a, b) == pytest.approx(20)
        assert central_moment_discrepancy(a, b, moments=2) == pytest.approx(4.5)
        assert central_moment_discrepancy(a, b, moments=1) == pytest.approx(1)

    def test_of_matrices_takes_moments_over_rows_and_norms_over_columns(self):
        # Means (1, 0) and (4, 4): (3, 4), norm 5. Second moments (1, 0) and (1, 0): 0.
        a, b = torch.tensor([[0.0, 0.0], [2.0, 0.0]]), torch.tensor([[3.0, 4.0], [5.0, 4.0]])
        assert central_moment_discrepancy(a, b, moments=2) == pytest.approx(5)

    @given(VECTORS, VECTORS)
    def test_is_symmetric_and_0_with_itself(self, a, b):
        assert central_moment_discrepancy(a, b) == central_moment_discrepancy(b, a) >= 0
        assert central_moment_discrepancy(a, a) == 0

    def test_scaled_divides_each_moment_by_a_power_of_the_range(self):
        # The first example above with range 4: 1 / 4 + 3.5 / 16 + 15.5 / 256.
        a, b = torch.tensor([0.0, 1.0, 1.0, 2.0]), torch.tensor([0.0, 0.0, 4.0, 4.0])
        for unit in (1.0, 1000.0):
            assert scaled_moment_discrepancy(unit * a, unit * b) == pytest.approx(
                1 / 4 + 3.5 / 16 + 15.5 / 256
            )
        assert scaled_moment_discrepancy(a, a) == 0

    def test_refuses_empty_tensors_and_fewer_than_one_moment(self):
        with pytest.raises(ValueError, match="1 or more, got 0"):
            central_moment_discrepancy(torch.ones(2), torch.ones(2), moments=0)
        with pytest.raises(ValueError, match="not empty"):
            central_moment_discrepancy(torch.ones(0), torch.ones(0))


class TestAll:
    @pytest.mark.parametrize("metric", METRICS)
    @pytest.mark.parametrize("odd", [nan, inf])
    def test_return_nan_for_nan(self, metric, odd):
        a = torch.tensor([1.0, odd, 2.0])
        for b in (torch.ones(3), torch.zeros(3), -a):
            assert isnan(metric(a, b))
            assert isnan(metric(b, a))

    @pytest.mark.parametrize("metric", [cosine, procrustes])
    def test_several_blocks_give_the_result_of_one(self, metric):
        # A tensor said again and again keeps its direction.
        a, b = (
            drawn(BLOCK_SIZE - 1, number=1).double(),
            drawn(BLOCK_SIZE - 1, number=2).double(),
        )
        assert metric(a.repeat(3), b.repeat(3)) == pytest.approx(metric(a, b), rel=1e-10)

    def test_several_blocks_of_columns_give_the_result_of_one(self):
        # A column said four times: every norm over columns doubles.
        a, b = drawn(BLOCK_SIZE // 2, 1, number=1), drawn(BLOCK_SIZE // 2, 1, number=2)
        assert central_moment_discrepancy(a.expand(-1, 4), b.expand(-1, 4)) == pytest.approx(
            2 * central_moment_discrepancy(a, b)
        )

    @pytest.mark.parametrize("metric", METRICS)
    def test_compute_in_float64(self, metric):
        # 2^-30 beside 1 is lost in float32, whose step there is 2^-23.
        a = torch.tensor([1.0, 1.0, 1.0, 2.0**-15])
        exact = metric(a.double(), a.double().flip(0))
        assert metric(a, a.flip(0)) == exact

    @pytest.mark.parametrize("metric", METRICS)
    def test_refuse_different_shapes(self, metric):
        with pytest.raises(ValueError, match="of one shape"):
            metric(torch.ones(2), torch.ones(3))


INPUTS = torch.tensor([[1.0, 2.0], [3.0, -1.0]])


def with_inplace_relu() -> nn.Module:
    """A linear layer with an activation in place."""
    return nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True))


class Twice(nn.Module):
    """A network that calls one layer twice and another one never."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.bend = nn.Tanh()
        self.idle = nn.Linear(2, 2)
        self.body = nn.Sequential(nn.Linear(2, 3))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.bend(self.body(self.bend(self.first(inputs))))


def test_returns_the_outputs_of_each_layer_computed_by_hand():
    # (1, 2) -> (1 - 2, 1 + 2 + 1) = (-1, 4); (3, -1) -> (4, 3). Bent: (0, 4) and (4, 3).
    weights = {
        "0.weight": torch.tensor([[1.0, -1.0], [1.0, 1.0]]),
        "0.bias": torch.tensor([0.0, 1.0]),
    }
    (outputs_by_layer,) = representations_of_models(with_inplace_relu, [weights], INPUTS)
    assert outputs_by_layer["0"].tolist() == [[-1, 4], [4, 3]]
    assert outputs_by_layer["1"].tolist() == [[0, 4], [4, 3]]


@pytest.mark.parametrize(
    ("build", "task"),
    [(MLP, TABLE), (CONVOLUTIONS, IMAGES), (WORDS, TEXTS), (READING, TEXTS)],
)
def test_the_last_outputs_are_the_logits_for_any_batch_size(build, task):
    inputs = pool_of(task, torch.float32).inputs
    cohort = [initial_weights(build, Seed(number)) for number in range(3)]
    logits = list(logits_of_models(build, cohort, inputs))
    outputs_by_layer = list(representations_of_models(build, cohort, inputs, batch=7))
    for layers, expected in zip(outputs_by_layer, logits, strict=True):
        torch.testing.assert_close(list(layers.values())[-1], expected)
        assert {len(outputs) for outputs in layers.values()} == {len(inputs)}


def test_concatenates_outputs_of_layers_called_twice_and_omits_unused_layers():
    (outputs_by_layer,) = representations_of_models(
        Twice, [initial_weights(Twice, Seed(0))], INPUTS
    )
    assert {name: outputs.shape[1] for name, outputs in outputs_by_layer.items()} == {
        "first": 2,
        "bend": 2 + 3,
        "body.0": 3,
    }
    torch.testing.assert_close(
        outputs_by_layer["bend"],
        torch.cat([outputs_by_layer["first"], outputs_by_layer["body.0"]], 1).tanh(),
    )


def test_one_layer_alone_has_the_same_outputs():
    weights = initial_weights(Twice, Seed(0))
    (whole,) = representations_of_models(Twice, [weights], INPUTS)
    (alone,) = representations_of_models(Twice, [weights], INPUTS, layer="body.0")
    assert alone.keys() == {"body.0"}
    assert torch.equal(alone["body.0"], whole["body.0"])
    (none,) = representations_of_models(Twice, [weights], INPUTS, layer="body")
    assert not none


def test_removes_hooks_if_the_model_fails():
    model = with_inplace_relu()
    with pytest.raises(RuntimeError):
        list(
            representations_of_models(
                lambda: model, [dict(model.named_parameters())], torch.ones(2, 3)
            )
        )
    assert not any(module._forward_hooks for module in model.modules())
