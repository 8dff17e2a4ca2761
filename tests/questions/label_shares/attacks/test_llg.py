"""Labels subtracted from the gradient one by one, counted by hand."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from overheard.core.errors import NeedsError
from overheard.core.knowledge import Knowledge
from overheard.core.parties import SERVER, client
from overheard.core.seeds import Seed
from overheard.core.view import View
from overheard.learning.last_layer import LastLayer
from overheard.questions.label_shares.attacks.llg import (
    Llg,
    count_labels_greedily,
    gradient_row_sums,
)
from tests.runs.one_step import (
    KNOWLEDGE,
    ZERO_WEIGHTS,
    biased_model,
    infer_shares,
    make_view,
    train_step,
    unit_examples,
)

MEASURED = Llg(impact="auxiliary")


class TestGreedyCounts:
    def test_counts_each_negative_class_once_then_the_smallest(self):
        # m = -0.078 of -0.5, 0, 0.25, 0.25. First: class 0, at -0.422. Then class 0 six times
        # (-0.422 ... -0.031, the next would be 0.047), then class 1 at 0: 8 labels.
        sums = [-0.5, 0.0, 0.25, 0.25]
        assert count_labels_greedily(sums, [0.0] * 4, -0.078125, 8) == [7, 1, 0, 0]

    def test_subtracts_offsets_after_the_first_step(self):
        # Class 1 is not negative, so it is not taken for sure; less 0.25 it is, to -0.25.
        assert count_labels_greedily([-0.5, 0.0], [0.25, 0.25], -0.25, 4) == [3, 1]

    def test_counts_nothing_without_a_negative_impact(self):
        sums, offsets = [-1.0, 2.0], [0.0, 0.0]
        assert count_labels_greedily(sums, offsets, 0.0, 8) == [0, 0]
        assert count_labels_greedily(sums, offsets, float("nan"), 8) == [0, 0]

    @given(
        st.lists(st.integers(-40, 40), min_size=2, max_size=6),
        st.integers(1, 9),
        st.integers(6, 50),
    )
    def test_counts_all_examples_at_any_scale(self, sums, impact, examples):
        row, offsets = [float(one) for one in sums], [0.0] * len(sums)
        counts = count_labels_greedily(row, offsets, -float(impact), examples)
        assert sum(counts) == examples
        assert all(count >= 1 for count, value in zip(counts, row, strict=True) if value < 0)
        # Powers of 2 do not change rounding.
        larger = [8 * value for value in row]
        assert count_labels_greedily(larger, offsets, -8.0 * impact, examples) == counts


class TestOnOneStep:
    def test_a_huge_reported_size_has_the_shares_of_a_million(self):
        # Label by label, 2^52 would take 67 years.
        delta = train_step((5, 3, 0))
        huge, million = (infer_shares(Llg(), make_view(delta, n)) for n in (2**52, 10**6))
        assert huge == million

    def test_the_estimated_impact_overestimates_the_larger_class(self):
        # g = 1/3 - n/8 = (-0.292, -0.042, 0.333), m = -0.333 / 8 * 4/3 = -0.056. Classes 0 and
        # 1 once each: -0.236 and 0.014. Of 6 left class 0 gets 5, till it stands at 0.042, and
        # class 1 the last: 6, 2, 0.
        assert infer_shares(Llg(), make_view(train_step((5, 3, 0)), 8)) == pytest.approx(
            [0.75, 0.25, 0]
        )

    def test_measured_impact_and_offset_recover_the_counts(self):
        # s = 1/3 each, so g - s = -n/8; m = -2/3 / 8 * 4/3 = -1/9, nearly the true -1/8.
        assert infer_shares(MEASURED, make_view(train_step((5, 3, 0)), 8)) == pytest.approx(
            [5 / 8, 3 / 8, 0]
        )

    def test_measured_offsets_correct_for_the_models_preference(self):
        # p = (0.8, 0.1, 0.1): g = p - n/8, s = p, so g - s = -n/8 again. Class 0 has g > 0 and
        # is found in the second step only.
        start = biased_model(0.8, 0.1, 0.1)
        shares = infer_shares(MEASURED, make_view(train_step((5, 3, 0), start), 8, start))
        assert shares == pytest.approx([5 / 8, 3 / 8, 0])

    def test_measured_rows_are_the_gradient_on_each_class(self):
        # Class k alone: p - y = 1/3 everywhere but -2/3 at k; features sum to 1.
        torch.testing.assert_close(
            gradient_row_sums(ZERO_WEIGHTS, LastLayer("0.weight", "0.bias"), KNOWLEDGE),
            torch.full((3, 3), 1 / 3).double() - torch.eye(3).double(),
        )

    def test_a_hidden_size_is_assumed(self):
        # As K grows, 4/3 * 0.333 = 0.444 is taken off in all: 0.333 brings classes 0 and 1 to
        # 0, the rest lifts both by 0.056. (0.292 + 0.056, 0.042 + 0.056) / 0.444.
        shares = infer_shares(
            Llg(assumed_examples=1000), make_view(train_step((5, 3, 0)), None)
        )
        assert shares == pytest.approx([0.781, 0.219, 0], abs=0.002)
        assert infer_shares(
            Llg(assumed_examples=8), make_view(train_step((5, 3, 0)), None)
        ) == pytest.approx([0.75, 0.25, 0])

    def test_the_estimated_impact_needs_no_recipe_and_no_auxiliary_examples(self):
        knowledge = Knowledge(3, KNOWLEDGE.build_model)
        heard = make_view(train_step((5, 3, 0)), 8)
        unsaid = View(heard.observers, heard.messages[1:])
        assert infer_shares(Llg(), unsaid, knowledge) == pytest.approx([0.75, 0.25, 0])


@pytest.mark.parametrize(
    ("changed", "missing"),
    [
        ({"auxiliary": None}, "auxiliary"),
        ({"auxiliary": unit_examples((4, 4, 0))}, "auxiliary"),
        ({"recipe": None}, "how clients train"),
    ],
)
def test_refuses_a_measured_impact_without_its_needs(changed, missing):
    with pytest.raises(NeedsError, match=missing):
        infer_shares(
            MEASURED, make_view(train_step((5, 3, 0)), 8), replace(KNOWLEDGE, **changed)
        )


def test_refuses_a_measured_impact_without_the_broadcast():
    heard = make_view(train_step((5, 3, 0)), 8)
    unsaid = View(heard.observers, heard.messages[1:])
    with pytest.raises(NeedsError, match="client/0 needs the broadcast"):
        infer_shares(MEASURED, unsaid)


def test_a_measured_impact_works_with_minibatches(leaky):
    # Five steps from an untrained model violate the derivation, yet main classes are found.
    targets = [client(number) for number in range(4)]
    view = leaky.transcript.seen_by(SERVER)
    claims = MEASURED.infer(view, targets, leaky.knowledge, Seed(0))
    assert [int(claims[who].shares.argmax()) for who in targets] == [0, 1, 2, 3]
