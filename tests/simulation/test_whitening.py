"""Fit and strength in factored axes equal those of whole gradients and covariance matrices."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from overheard.core.seeds import Seed
from overheard.learning.layer_gradients import LayerGradients, TableGradients
from overheard.simulation.whitening import (
    Axes,
    DenseGradients,
    Evidence,
    RowGradients,
    SummedGradients,
    at_points,
    combine_parts,
    entry_variances,
    evidence_beside_others,
    evidence_by_band,
    evidence_of,
    joined,
    log_likelihood_ratios,
    main_axes,
    principal_axes,
    shorten_outliers,
    sum_of,
)


def draws(seed: int, *shapes: tuple[int, ...]) -> list[Tensor]:
    generator = Seed(seed).generator()
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


def two_bands(like: Tensor) -> Tensor:
    """Return the first input of a matrix in no band, and the others in two."""
    bands = like.new_zeros(like.shape[1], 2)
    bands[1::2, 0], bands[2::2, 1] = 1, 1
    return bands


def auc(evidence: Evidence, members: int) -> float:
    scores = evidence.fit / evidence.strength.sqrt()
    return float((scores[:members].unsqueeze(1) > scores[members:]).double().mean())


def test_fit_and_strength_are_those_worked_by_hand(monkeypatch) -> None:
    monkeypatch.setattr("overheard.simulation.whitening.RIDGE", 0.0)
    monkeypatch.setattr("overheard.simulation.whitening.NOISE_SHARES", (0.0,))
    # The entries of two gradients: (1, 1; 1, 1) and (7, 1; 1, 7). Mean squares: (25, 1; 1, 25).
    matrices = torch.tensor([[[1.0, 1], [1, 1]], [[7, 1], [1, 7]]], dtype=torch.float64)
    update = torch.tensor([[-10.0, 2], [2, 10]], dtype=torch.float64)
    # The factor is the mean of (100/25, 4, 4, 100/25), which is 4: C = (100, 4; 4, 100).
    found = evidence_of(SummedGradients(matrices), update)
    # C^-1 U = (-.1, .5; .5, .1): N = -(-.1 + .5 + .5 + .1) = -1, and -(-.7 + 1 + .7) = -1.
    # S = 2/100 + 2/4 = .52, and 98/100 + 2/4 = 1.48.
    torch.testing.assert_close(found.fit, torch.tensor([-1.0, -1]).double())
    torch.testing.assert_close(found.strength, torch.tensor([0.52, 1.48]).double())


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**20), points=st.integers(1, 3))
def test_products_of_slopes_and_inputs_give_what_whole_gradients_give(
    seed: int, points: int
) -> None:
    # More records than inputs: the axes are a whole basis.
    inputs, slopes, update, amounts = draws(seed, (points, 9, 4), (points, 9, 3), (3, 4), (9,))
    dense = DenseGradients.of_points(list(inputs), list(slopes))
    whole = SummedGradients((slopes.unsqueeze(3) * inputs.unsqueeze(2)).mean(0))
    axes, weights = dense.axes(), update.square()
    for one, other in ((dense, whole), (dense.rotated(axes), whole.rotated(axes))):
        torch.testing.assert_close(one.mean(), other.mean())
        torch.testing.assert_close(one.weighted_sum(amounts), other.weighted_sum(amounts))
        bands = two_bands(update)
        torch.testing.assert_close(one.products(update, bands), other.products(update, bands))
        torch.testing.assert_close(one.squares(weights, bands), other.squares(weights, bands))
    by_entry = whole.matrices * update
    expected = torch.stack([by_entry[:, :, 1::2].sum((1, 2)), by_entry[:, :, 2].sum(1)], 1)
    torch.testing.assert_close(whole.products(update, bands), expected)
    # The same covariance matrix, in any axes.
    variances = entry_variances(dense.rotated(axes).mean_squares(), axes.rotate(update)).total
    turn = torch.kron(axes.outputs.contiguous(), axes.inputs.contiguous())
    covariance = turn @ torch.diag(variances.flatten()) @ turn.T
    rows = whole.matrices.flatten(1)
    solved = torch.linalg.solve(covariance, rows.T)
    found = evidence_of(dense.rotated(axes), axes.rotate(update))
    torch.testing.assert_close(found.fit, -(update.flatten() @ solved))
    torch.testing.assert_close(found.strength, (rows * solved.T).sum(1))


def test_inputs_that_stay_the_same_are_kept_once() -> None:
    inputs, slopes = draws(0, (5, 1, 4), (2, 5, 1, 3))
    found = at_points([LayerGradients(inputs, one) for one in slopes])
    assert isinstance(found, DenseGradients)
    assert len(found.inputs) == 1
    torch.testing.assert_close(found.slopes[0], slopes.mean(0).squeeze(1))


def test_parts_whose_inputs_stay_the_same_join_parts_whose_inputs_change() -> None:
    inputs, slopes = draws(0, (2, 5, 1, 4), (2, 5, 1, 3))
    moving = at_points([LayerGradients(*one) for one in zip(inputs, slopes, strict=True)])
    still = at_points([LayerGradients(inputs[0], one) for one in slopes])
    both = joined([moving, still])
    (matrix,) = draws(1, (3, 4))
    bands = two_bands(matrix)
    expected = torch.cat((moving.products(matrix, bands), still.products(matrix, bands)))
    torch.testing.assert_close(both.products(matrix, bands), expected)


def test_positions_are_summed() -> None:
    inputs, slopes = draws(0, (5, 2, 4), (5, 2, 3))
    found = at_points([LayerGradients(inputs, slopes)])
    assert isinstance(found, SummedGradients)
    torch.testing.assert_close(found.matrices, torch.einsum("npo,npi->noi", slopes, inputs))
    # Texts of one token have one position, and others have more.
    short = [LayerGradients(inputs[:, :1], one[:, :1]) for one in (slopes, 2 * slopes)]
    both = joined([found, at_points(short)])
    expected = 1.5 * torch.einsum("no,ni->noi", slopes[:, 0], inputs[:, 0])
    torch.testing.assert_close(both.matrices[5:], expected)


@pytest.mark.parametrize("rows", [3, 30])
def test_axes_diagonalise_the_second_moments_and_span_the_rows(rows: int) -> None:
    (numbers,) = draws(1, (rows, 6))
    axes = principal_axes(numbers)
    assert axes.shape == (6, min(rows, 6))
    torch.testing.assert_close(axes.T @ axes, torch.eye(axes.shape[1], dtype=torch.float64))
    torch.testing.assert_close((numbers @ axes) @ axes.T, numbers)
    moments = (numbers @ axes).T @ (numbers @ axes)
    torch.testing.assert_close(moments, torch.diag(moments.diagonal()))


def test_axes_of_very_wide_layers_come_of_some_rows(monkeypatch) -> None:
    monkeypatch.setattr("overheard.simulation.whitening.WIDE_SIDES", 5)
    monkeypatch.setattr("overheard.simulation.whitening.WIDE_ROWS", 4)
    first, second = draws(7, (6, 9), (6, 9))
    axes = principal_axes(first, second)
    assert axes.shape == (9, 4)
    kept = torch.cat((first[::3], second[::3]))
    torch.testing.assert_close((kept @ axes) @ axes.T, kept)


def test_rows_of_zeros_have_an_axis_and_finite_evidence() -> None:
    nothing = torch.zeros(4, 3, 5)
    axes = SummedGradients(nothing).axes()
    found = evidence_of(SummedGradients(nothing).rotated(axes), axes.rotate(torch.ones(3, 5)))
    assert bool(log_likelihood_ratios([found.standardised()]).isfinite().all())
    none = evidence_by_band(SummedGradients(nothing).rotated(axes), axes.rotate(nothing[0]))
    assert bool(log_likelihood_ratios([combine_parts(none)]).isfinite().all())


def test_noise_is_measured_on_the_update() -> None:
    moments = torch.outer(torch.logspace(-3, 3, 40), torch.logspace(-3, 3, 50)).double()
    signal, noise = draws(2, (40, 50), (40, 50))
    clean = entry_variances(moments, signal * moments.sqrt()).total
    sent = signal * moments.sqrt() + noise * 1e3
    noisy = entry_variances(moments, sent)
    assert noisy.noise == pytest.approx(1e6, rel=0.2)
    assert float(noisy.total.min()) == pytest.approx(1e6, rel=0.2)
    # The Wiener filter leaves half of the error, or less.
    kept = noisy.without(noisy.noise, sent)
    error = (kept - signal * moments.sqrt()).square().sum()
    assert float(error) < float((noise * 1e3).square().sum()) / 2
    assert float(clean.min()) < 1e-2 * float(clean.mean())


def test_standardised_fits_of_most_records_are_standard_normal() -> None:
    noise, strength = draws(3, (4000,), (4000,))
    strength = strength.exp()
    biased = Evidence(3 * noise * strength.sqrt() + 2 * strength.sqrt(), strength)
    fit = biased.standardised()
    scores = fit.fit / fit.strength.sqrt()
    assert float(scores.mean()) == pytest.approx(0, abs=0.05)
    assert float(scores.std()) == pytest.approx(1, abs=0.05)


def test_a_layer_that_does_not_change_adds_no_strength() -> None:
    # Strengths are small where rates are high: 1 would outweigh all other layers.
    none = Evidence(torch.zeros(9).double(), torch.rand(9).double()).standardised()
    assert none.fit.abs().max() == 0
    assert 0 < none.strength.min() <= none.strength.max() < 1e-30


def test_a_layer_whose_lowest_scores_are_far_below_the_others_counts_for_less() -> None:
    # Twenty of 100 scores are -12, such as those of one label; the others are -.5 and .5.
    fit = torch.tensor([-12.0] * 20 + [-0.5, 0.5] * 40).double()
    found = Evidence(fit, torch.ones(100).double()).standardised()
    # The median is -.5, so the spread is 11.5 / 1.645 = 7, and the strength 1 / 49.
    assert found.strength[0].item() == pytest.approx(1 / 49, rel=0.01)


@pytest.mark.parametrize("weight", [0.01, 1.0, 100.0])
def test_members_have_ratios_above_0_whatever_the_weight_of_a_gradient_is(weight) -> None:
    noise, spread = draws(4, (2, 2000), (2000,))
    strength = (spread.abs() + 1).square() * 9 / weight**2
    is_member = torch.arange(2000) < 200
    rounds = [
        Evidence(one * strength.sqrt() + is_member * weight * strength, strength)
        for one in noise
    ]
    ratios = log_likelihood_ratios(rounds)
    assert float((ratios[is_member] > 0).double().mean()) > 0.95
    assert float((ratios[~is_member] > 0).double().mean()) < 0.05
    # Two rounds tell more than one.
    alone = log_likelihood_ratios(rounds[:1])
    assert float(ratios[is_member].mean()) > 1.5 * float(alone[is_member].mean())


def test_the_further_a_gradient_is_from_being_in_an_update_the_smaller_the_ratio() -> None:
    fit = torch.cat([torch.linspace(-20, 12, 65), torch.zeros(400)]).double()
    ratios = log_likelihood_ratios([Evidence(fit, torch.ones_like(fit))])[:65]
    assert bool((ratios.diff() >= 0).all())
    assert float(ratios[0]) < 0 < float(ratios[-1])


def test_axes_rotate_an_update_as_its_gradients() -> None:
    matrices, update = draws(5, (7, 3, 4), (3, 4))
    axes = Axes(*(torch.linalg.qr(one)[0] for one in draws(6, (4, 4), (3, 3))))
    every = torch.ones(4, 1).double()
    torch.testing.assert_close(
        SummedGradients(matrices).rotated(axes).products(axes.rotate(update), every),
        SummedGradients(matrices).products(update, every),
    )


def test_rows_of_a_table_give_what_whole_gradients_give() -> None:
    # Rows of two columns; the first record reads rows 0 and 2, the others one row each.
    parts = [
        TableGradients(3, torch.tensor([[0, 2]]), torch.tensor([[[1.0, 0], [3, 2]]])),
        TableGradients(3, torch.tensor([[2], [1]]), torch.tensor([[[2.0, 2]], [[1, 5]]])),
    ]
    whole = SummedGradients(torch.cat([one.matrices() for one in parts]))
    (update,) = draws(1, (2, 3))
    rows, update = joined([at_points([one, one]) for one in parts]), update.float()
    assert isinstance(rows, RowGradients)
    axes = Axes(None, whole.axes().outputs)
    torch.testing.assert_close(rows.axes().outputs.abs(), axes.outputs.abs())
    for one, other in ((rows, whole), (rows.rotated(axes), whole.rotated(axes))):
        torch.testing.assert_close(one.mean(), other.mean())
        torch.testing.assert_close(one.mean_squares(), other.mean_squares())
        bands, weights = two_bands(update), update.abs()
        torch.testing.assert_close(one.products(update, bands), other.products(update, bands))
        torch.testing.assert_close(one.squares(weights, bands), other.squares(weights, bands))


def test_likely_members_hide_no_others() -> None:
    # The first 30 of 60 gradients are in the update, each with weight .1, beside little noise.
    matrices, noise = draws(5, (60, 12, 12), (12, 12))
    update = -0.1 * matrices[:30].sum(0) + 0.001 * noise
    gradients = SummedGradients(matrices)
    alone = evidence_by_band(gradients, update)
    assert len(alone) == 4  # of 36 entries each
    is_member = (torch.arange(60) < 30).double()
    found = evidence_beside_others(gradients, update, alone, is_member)
    weights, before = (
        sum(one.fit for one in parts) / sum(one.strength for one in parts)
        for parts in (found, alone)
    )
    torch.testing.assert_close(weights[:30], torch.full((30,), 0.1).double(), rtol=0.2, atol=0)
    assert before[:30].std() > 3 * weights[:30].std()
    assert weights[30:].abs().max() < before[30:].abs().max() / 3
    # Who is certainly no member changes nothing.
    same = evidence_beside_others(gradients, update, alone, torch.zeros(60).double())
    for one, other in zip(same, alone, strict=True):
        torch.testing.assert_close(one.fit, other.fit)


def test_no_more_is_subtracted_than_an_update_holds_where_gradients_are_alike() -> None:
    noise, shared = draws(9, (60, 6, 5), (6, 5))
    matrices = noise + shared  # as of records of one label
    gradients, update = SummedGradients(matrices), -0.1 * matrices[:30].sum(0)
    alone = evidence_by_band(gradients, update)
    # Every record is likely, for what members share shows in each fit.
    found = evidence_beside_others(gradients, update, alone, torch.full((60,), 0.9).double())
    assert len(alone) == len(found) == 1
    assert auc(alone[0], 30) < 0.6
    assert auc(found[0], 30) > 0.8


def test_a_band_has_a_factor_of_its_own(monkeypatch) -> None:
    monkeypatch.setattr("overheard.simulation.whitening.RIDGE", 0.0)
    monkeypatch.setattr("overheard.simulation.whitening.NOISE_SHARES", (0.0,))
    monkeypatch.setattr("overheard.simulation.whitening.BANDS", 2)
    monkeypatch.setattr("overheard.simulation.whitening.SMALLEST_BAND", 2)
    # Mean squares of inputs are 25, 1 and 0: the record has no gradient at the last.
    matrices = torch.tensor([[[5.0, 1, 0], [5, 1, 0]]], dtype=torch.float64)
    update = torch.tensor([[-50.0, -2, 9], [-50, -2, 9]], dtype=torch.float64)
    small, large = evidence_by_band(SummedGradients(matrices), update)
    # Factors are 4 / 1 and 2500 / 25 = 100, so variances 4 and 2500: N = 2 (2 / 4), S = 2 / 4.
    assert [small.fit.item(), small.strength.item()] == pytest.approx([1.0, 0.5])
    # N = 2 (5 x 50 / 2500), S = 2 (25 / 2500).
    assert [large.fit.item(), large.strength.item()] == pytest.approx([0.2, 0.02])


def test_noise_that_parts_share_is_taken_out() -> None:
    own, other, shared = draws(12, (2000,), (2000,), (2000,))
    strong, weak = torch.full((2000,), 1.0).double(), torch.full((2000,), 0.01).double()
    member = (torch.arange(2000) < 200).double()
    parts = [  # members stand out by three in the first part alone
        Evidence(own + 3 * shared + 3 * member, strong),
        Evidence((other + 3 * shared) * 0.1, weak),
    ]
    # Three of sqrt(10) deviations: an AUC of .75.
    assert auc(parts[0], 200) < 0.8
    # What is left of the first has a deviation of about sqrt(2): an AUC of .93 for 3 / sqrt(2).
    assert auc(combine_parts(parts), 200) > 0.88


def test_parts_that_share_nothing_add_up() -> None:
    fits, roots = draws(13, (5, 3000), (5, 3000))
    parts = [
        Evidence(fit * (root.abs() + 1), (root.abs() + 1).square())
        for fit, root in zip(fits, roots, strict=True)
    ]
    found = combine_parts(parts)
    total = sum_of(parts)
    scores = torch.stack([one.fit / one.strength.sqrt() for one in (found, total)])
    assert float(torch.corrcoef(scores)[0, 1]) > 0.99
    torch.testing.assert_close(found.strength, total.strength, rtol=0.15, atol=0)


def test_what_members_share_across_parts_is_no_noise() -> None:
    # A third of 300 records are members, and records differ in their strengths.
    member, scale = (torch.arange(300) < 100).double(), torch.linspace(0.05, 1, 16).square()
    missed = []
    for seed in range(6):
        noise, spread = draws(seed, (16, 300), (16, 300))
        roots = (0.7 * spread).exp() * scale.double().unsqueeze(1)
        parts = [
            Evidence(one * root + 2 * member * root.square(), root.square())
            for one, root in zip(noise, roots, strict=True)
        ]
        missed.append(1 - auc(combine_parts(parts), 100))
    # It is .007 if correlations are those of all scores.
    assert sum(missed) / 6 < 0.005


def test_few_records_are_told_apart_by_many_parts() -> None:
    fits = draws(14, *[(30,)] * 60)
    member = (torch.arange(30) < 5).double()
    found = combine_parts([Evidence(one + 0.3 * member, torch.ones_like(one)) for one in fits])
    # The sum over 60 parts is 2.3 deviations above others: an AUC of .95.
    assert auc(found, 5) > 0.85


def test_a_layer_of_one_number_says_nothing_of_any_record() -> None:
    (slopes,) = draws(10, (500, 1, 1))
    gradients, update = SummedGradients(slopes.abs().float() + 0.1), torch.full((1, 1), -0.3)
    found = evidence_of(gradients, update).standardised()
    # Each fit is the root of the strength but for rounding, which must not be magnified.
    assert not found.fit.any()
    assert found.strength.max() < 1e-30


def test_rows_far_longer_than_all_others_are_shortened_and_those_of_no_number_are_0() -> None:
    rows = torch.ones(200, 4)  # of norm 2
    assert shorten_outliers(rows) is rows
    rows[7], rows[8, 0], rows[9, 1] = 1e5, torch.nan, torch.inf
    found = shorten_outliers(rows)
    assert found[7].tolist() == pytest.approx([10.0] * 4)  # ten times the norm of others
    assert not found[8:10].any()
    assert found[10:].equal(rows[10:])
    assert not shorten_outliers(torch.full((3, 2), torch.nan)).any()
    few = torch.zeros(400, 4)  # a model fits all records but three
    few[:3] = torch.tensor([[1.0], [2], [3]])
    assert shorten_outliers(few).equal(few)


def test_main_axes_keep_the_root_of_a_share_of_inputs_and_of_outputs() -> None:
    (matrices,) = draws(11, (40, 6, 12))
    gradients = SummedGradients(matrices)
    found, axes = main_axes(gradients, 0.25), gradients.axes()
    assert axes.inputs is not None
    assert found.inputs is not None
    assert found.inputs.equal(axes.inputs[:, -6:])  # of the largest second moments
    assert found.outputs.equal(axes.outputs[:, -3:])
    assert main_axes(gradients, 1e-9).rotate(matrices[0]).shape == (1, 1)
