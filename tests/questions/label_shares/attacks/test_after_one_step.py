"""Attacks that invert the gradient of one step, in cases that are exact for all of them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.attack import Attack
from overheard.core.errors import NeedsError
from overheard.questions.label_shares.attacks.ilrg import Ilrg
from overheard.questions.label_shares.attacks.llg import Llg
from overheard.questions.label_shares.attacks.ramakrishna import Ramakrishna
from overheard.questions.label_shares.attacks.zlg import Zlg
from tests.runs.one_step import (
    KNOWLEDGE,
    ZERO_WEIGHTS,
    build_without_bias,
    constant_update,
    infer_shares,
    make_view,
    train_step,
)

WEIGHTS = Ramakrishna(form="auxiliary_gradient_weights")
BIAS = Ramakrishna(form="auxiliary_gradient")
SOFT, RATIO = Ramakrishna(form="soft_label"), Ramakrishna(form="ratio")
MEASURED = Llg(impact="auxiliary")

WITHOUT_BIAS = replace(KNOWLEDGE, build_model=build_without_bias)
ONLY_WEIGHTS = make_view(
    {"0.weight": train_step((5, 3, 0))["0.weight"]}, 8, {"0.weight": ZERO_WEIGHTS["0.weight"]}
)


@pytest.mark.parametrize(
    ("attack", "precision"), [(Ilrg(), 1e-6), (Zlg(), 1e-6), (BIAS, 1e-4), (WEIGHTS, 1e-4)]
)
@given(counts=st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any))
def test_the_counts_are_recovered_after_one_step_of_a_zero_model(attack, precision, counts):
    # ILRG: whatever the recovered features are, P_k = 1/3, as it truly is. Then n solves
    # sum_k n_k / 3 - n_c = K db_c = K / 3 - n_c. ZLG: p = 1/3, O = 1, s = 1,
    # DW_c = 1/3 - n_c / K: 1/3 - DW_c = n_c / K. Ramakrishna: one step is linear in the
    # examples: the change is the shares' mixture of the classes'.
    expected = [count / sum(counts) for count in counts]
    shares = infer_shares(attack, make_view(train_step(counts), sum(counts)))
    assert shares == pytest.approx(expected, abs=precision)


@pytest.mark.parametrize(
    "attack",
    [
        *(Ilrg(), Llg(), MEASURED, SOFT, BIAS, WEIGHTS, RATIO),
        *(Zlg(), Zlg(interpolate=False), Zlg(inputs="noise")),
    ],
)
@pytest.mark.parametrize("value", [0.0, float("nan"), float("inf")])
def test_an_uninformative_update_gives_even_shares(attack: Attack, value: float):
    shares = infer_shares(attack, make_view(constant_update(value), 8))
    assert shares == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("attack", [Ilrg(), SOFT, BIAS])
def test_attacks_that_read_the_bias_refuse_a_model_without_it(attack: Attack):
    with pytest.raises(NeedsError, match="bias"):
        infer_shares(attack, ONLY_WEIGHTS, WITHOUT_BIAS)


@pytest.mark.parametrize(
    ("attack", "precision"), [(MEASURED, 1e-6), (Zlg(), 1e-6), (WEIGHTS, 1e-5)]
)
def test_attacks_that_read_weights_work_without_a_bias(attack: Attack, precision: float):
    shares = infer_shares(attack, ONLY_WEIGHTS, WITHOUT_BIAS)
    assert shares == pytest.approx([5 / 8, 3 / 8, 0], abs=precision)
